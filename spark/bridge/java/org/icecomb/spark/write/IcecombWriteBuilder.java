package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.icecomb.spark.IcebergSettings;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.BeginWrite;
import org.icecomb.spark.planner.Protocol.CommitWrite;
import org.icecomb.spark.planner.Protocol.CommittedWrite;
import org.icecomb.spark.planner.Protocol.QueriedTable;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/** A write builder that requests instructions from the planner. */
public class IcecombWriteBuilder implements WriteBuilder {

  private final TableHandle table;
  private final LogicalWriteInfo info;

  public IcecombWriteBuilder(TableHandle table, LogicalWriteInfo info) {
    this.table = table;
    this.info = info;
  }

  @Override
  public Write build() {
    WriteInstructions instructions = instructions();
    MovedRows moved = MovedRows.of(instructions, info);
    return new IcecombWrite(table, info.schema(), instructions, moved, this::commit);
  }

  /** The planner's instructions for the write. */
  final WriteInstructions instructions() {
    BeginWrite request = begin(info.options().asCaseSensitiveMap());
    return table.ask(request, WriteInstructions.class);
  }

  /** The request to begin the write. */
  protected BeginWrite begin(Map<String, String> options) {
    return begin("append", null, Json.array(), options);
  }

  /**
   * The request to begin a write.
   *
   * @param command the statement, if it has read the rows of the table
   * @param filters the rows to delete, if the operation is an overwrite
   */
  final BeginWrite begin(
      String operation, String command, ArrayNode filters, Map<String, String> options) {
    boolean ofTable = operation.equals("replace_files") || operation.equals("change_rows");
    return new BeginWrite(
        table.reference(),
        operation,
        command,
        filters,
        options,
        IcebergSettings.ofWrites(),
        IcebergSettings.audit(),
        null,
        ofTable ? null : Schemas.toJson(info.schema()),
        TableHandle.isCaseSensitive(),
        queried());
  }

  /** The query's reads of the table itself, if the rows replace others. */
  protected List<QueriedTable> queried() {
    return List.of();
  }

  /**
   * Commits the files of a write.
   *
   * @param write the planner's state of the write
   */
  protected CommittedWrite commit(JsonNode write, FinishedFiles finished) {
    return commit(new CommitWrite(write, finished.files(), null, null, null, null));
  }

  final CommittedWrite commit(CommitWrite request) {
    return table.session().ask(catalog -> request, CommittedWrite.class);
  }
}
