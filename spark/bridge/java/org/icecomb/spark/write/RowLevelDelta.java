package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriteBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDelta;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.BeginWrite;
import org.icecomb.spark.planner.Protocol.CommitWrite;
import org.icecomb.spark.planner.Protocol.CommittedWrite;
import org.icecomb.spark.planner.Protocol.Delta;
import org.icecomb.spark.planner.Protocol.WriteInstructions;
import org.icecomb.spark.read.ChangedFiles;
import org.icecomb.spark.read.DeltaScan;
import org.icecomb.spark.read.IcecombScanBuilder;
import org.icecomb.spark.read.MetadataColumns;

/**
 * UPDATE, DELETE or MERGE that does not rewrite files: Spark deletes rows by file and position, and
 * inserts rows, and one commit adds the deletes and the rows. An updated row is deleted and
 * inserted.
 */
public final class RowLevelDelta extends RowLevelChange implements SupportsDelta {

  private final List<String> metadataColumns;
  private DeltaScan scan;

  /**
   * @param metadataColumns the metadata columns of deleted rows that Spark reads or keeps
   */
  public RowLevelDelta(TableHandle table, Command command, List<String> metadataColumns) {
    super(table, command);
    this.metadataColumns = metadataColumns;
  }

  @Override
  public NamedReference[] rowId() {
    return new NamedReference[] {
      Expressions.column(MetadataColumns.FILE_ID), Expressions.column(MetadataColumns.POSITION)
    };
  }

  @Override
  public NamedReference[] requiredMetadataAttributes() {
    return metadataColumns.stream().map(Expressions::column).toArray(NamedReference[]::new);
  }

  @Override
  public boolean representUpdateAsDeleteAndInsert() {
    return true;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new IcecombScanBuilder(table, options) {
      @Override
      public Scan build() {
        return scan = buildDelta();
      }
    };
  }

  @Override
  public DeltaWriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new Delete(info, scan);
  }

  private final class Delete extends Builder implements DeltaWriteBuilder {

    private final LogicalWriteInfo info;

    /** The scan; null if Spark found that no row of the table can change. */
    private final DeltaScan read;

    Delete(LogicalWriteInfo info, DeltaScan read) {
      super(info);
      this.info = info;
      this.read = read;
    }

    @Override
    public DeltaWrite build() {
      WriteInstructions instructions = instructions();
      return new PositionDeltaWrite(
          table,
          instructions,
          info.rowIdSchema().orElseThrow(),
          () -> read == null ? ChangedFiles.NONE : read.changedFiles(),
          MovedRows.of(instructions, info),
          this::commit);
    }

    @Override
    protected BeginWrite begin(Map<String, String> options) {
      return begin("change_rows", statement(), Json.array(), options);
    }

    @Override
    protected CommittedWrite commit(JsonNode write, FinishedFiles finished) {
      Delta delta =
          new Delta(
              table.reference(),
              read == null ? null : read.fileConditions(),
              read == null ? List.of() : read.entries(finished.changed()),
              finished.deletes());
      return commit(new CommitWrite(write, finished.files(), null, delta, null, finished.merged()));
    }
  }
}
