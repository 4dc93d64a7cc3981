package org.icecomb.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.AbortStaged;
import org.icecomb.spark.planner.Protocol.CommitStaged;
import org.icecomb.spark.planner.Protocol.Done;
import org.icecomb.spark.write.StagedWriteBuilder;

/**
 * A table that a statement is creating or replacing: files are written for it, and one commit makes
 * it visible with all of them.
 *
 * <p>Files of a failed statement are deleted, unless the commit may have happened after all.
 */
public final class IcecombStagedTable extends TableBeingMade<IcecombTable> {

  private final PlannerSession session;
  private final Identifier identifier;
  private JsonNode write;
  private ArrayNode written = Json.array();
  private List<String> paths = List.of();
  private boolean commitUnknown;
  private List<JsonNode> read = List.of();

  /**
   * @param table the new table
   */
  IcecombStagedTable(PlannerSession session, Identifier identifier, IcecombTable table) {
    super(table);
    this.session = session;
    this.identifier = identifier;
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_WRITE, TableCapability.TRUNCATE);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new StagedWriteBuilder(table.handle(), info, this::keep);
  }

  /**
   * Records the reads of the replaced table, so that the commit fails if others changed it since.
   *
   * @param tables the tables that the statement's query reads, including others
   */
  public void read(List<IcecombTable> tables) {
    read =
        tables.stream()
            .filter(each -> each.uuid().equals(table.uuid()))
            .map(each -> each.readFor(table.handle()))
            .toList();
  }

  private void keep(JsonNode state, ArrayNode files, List<String> locations) {
    write = state;
    written = files;
    paths = locations;
  }

  @Override
  public void commitStagedChanges() {
    // Only the planner's own refusal proves that the files are unused.
    commitUnknown = true;
    try {
      CommitStaged request = new CommitStaged(table.reference(), write, written, read);
      session.ask(catalog -> request, Done.class);
    } catch (PlannerException e) {
      commitUnknown = e.leavesCommitUnknown();
      throw SparkErrors.ofTable(e, identifier);
    }
    table.handle().refreshCached();
  }

  @Override
  public void abortStagedChanges() {
    if (commitUnknown) {
      return;
    }
    AbortStaged request = new AbortStaged(table.handle().reference(), paths);
    session.cleanUp(catalog -> request);
  }
}
