package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.icecomb.spark.AuditSettings;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.BeginWrite;
import org.icecomb.spark.planner.Protocol.CommitWrite;
import org.icecomb.spark.planner.Protocol.Done;
import org.icecomb.spark.planner.Protocol.Replaced;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/** Asks the planner how rows are to be written into a table. */
public class IcecombWriteBuilder implements WriteBuilder {

  private final TableHandle table;
  private final LogicalWriteInfo info;

  public IcecombWriteBuilder(TableHandle table, LogicalWriteInfo info) {
    this.table = table;
    this.info = info;
  }

  @Override
  public final Write build() {
    BeginWrite request = begin(info.options().asCaseSensitiveMap());
    return new IcecombWrite(table, table.ask(request, WriteInstructions.class), this::commit);
  }

  /** What the write is to do. */
  protected BeginWrite begin(Map<String, String> options) {
    return begin("append", null, Json.array(), options);
  }

  /**
   * The request to begin a write.
   *
   * @param command the statement, where the operation replaces files
   * @param filters the rows that go, where the operation overwrites
   */
  final BeginWrite begin(
      String operation, String command, ArrayNode filters, Map<String, String> options) {
    return new BeginWrite(
        table.reference(), operation, command, filters, options, AuditSettings.now());
  }

  /**
   * Commits the files of a write.
   *
   * @param write names the write to the planner
   * @param files what the planner is to be told of them
   * @param paths where they are
   */
  protected void commit(JsonNode write, ArrayNode files, List<String> paths) {
    commit(write, files, (Replaced) null);
  }

  /** Commits the files of a write, in place of those that were read. */
  final void commit(JsonNode write, ArrayNode files, Replaced replaced) {
    table.session().ask(catalog -> new CommitWrite(write, files, replaced), Done.class);
  }
}
