package org.icecomb.spark.write;

import java.util.function.Supplier;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.write.DeltaBatchWrite;
import org.apache.spark.sql.connector.write.DeltaWrite;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Protocol.WriteInstructions;
import org.icecomb.spark.read.ChangedFiles;
import org.icecomb.spark.read.MetadataColumns;

/** A write whose tasks write data files and position delete files, in one commit by the planner. */
final class PositionDeltaWrite extends IcecombWrite implements DeltaWrite, DeltaBatchWrite {

  private final TableHandle table;
  private final WriteInstructions instructions;
  private final StructType rowId;
  private final Supplier<ChangedFiles> files;

  /**
   * @param rowId Spark's schema of the ids of deleted rows
   * @param files supplies the data files that may lose rows, called after they are planned
   * @param moved the lineage of rows of other files; null if none is written
   */
  PositionDeltaWrite(
      TableHandle table,
      WriteInstructions instructions,
      StructType rowId,
      Supplier<ChangedFiles> files,
      MovedRows moved,
      Commit commit) {
    super(table, null, instructions, moved, commit);
    this.table = table;
    this.instructions = instructions;
    this.rowId = rowId;
    this.files = files;
  }

  @Override
  public DeltaBatchWrite toBatch() {
    return this;
  }

  @Override
  public DeltaWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    SparkSession spark = SparkSession.active();
    WriteSettings deletes = WriteSettings.ofDeletes(instructions);
    return UserDeltaWriterFactory.of(
        table.user(),
        new PositionDeltaWriterFactory(
            rowWriters(),
            instructions.deletes().asVectors() ? null : broadcast(spark, deletes),
            deletes,
            instructions.deletes().byFile(),
            instructions.deletes().asVectors(),
            JavaSparkContext.fromSparkContext(spark.sparkContext()).broadcast(files.get()),
            rowId.fieldIndex(MetadataColumns.FILE_ID),
            rowId.fieldIndex(MetadataColumns.POSITION)));
  }
}
