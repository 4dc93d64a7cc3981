package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.HasPartitionKey;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Values;
import org.icecomb.spark.planner.Protocol;
import org.icecomb.spark.planner.Protocol.KeyColumns;
import org.icecomb.spark.planner.Protocol.PlannedFile;
import org.icecomb.spark.planner.Protocol.PositionDeleteFiles;

/**
 * A range of one data file to read.
 *
 * @param format the file's format: {@code parquet}, {@code orc} or {@code avro}
 * @param last whether it extends to the end of the file
 * @param rows the row count of a whole file according to its manifest; negative if unknown
 * @param partition the value of {@code _partition} by field name; null if not requested, and in an
 *     unpartitioned table
 * @param constants values of columns that are the same in the whole file, by field id; of row
 *     lineage the id of the first row, and the sequence number, which rows inherit; null if none
 * @param deletes packed positions of deleted rows (see {@link PositionDeletes}), or null
 * @param positionDeleteFiles the files to read them from instead, or null
 * @param equalityDeletes the equality deletes that apply to the file
 */
record FileTask(
    String path,
    String format,
    long start,
    long length,
    boolean last,
    long rows,
    int specId,
    Map<String, Object> partition,
    Map<Integer, Object> constants,
    String deletes,
    PositionDeletes.Files positionDeleteFiles,
    List<EqualityDeletes> equalityDeletes)
    implements Serializable {

  /**
   * The file ranges that one Spark task reads.
   *
   * @param partitionKey the grouping key of all its rows, or null if tasks are not grouped
   * @param preferredLocations the hosts that store most of it; none if locality is off
   */
  record Group(List<FileTask> files, InternalRow partitionKey, String[] preferredLocations)
      implements HasPartitionKey {}

  /** A task for a whole file of a plan. */
  static FileTask whole(PlannedFile file, PlannedTasks plan) {
    Map<Integer, Object> constants = new HashMap<>();
    addConstants(constants, file, plan.columns());
    addConstants(constants, file, plan.lineage());
    List<EqualityDeletes> equalityDeletes = new ArrayList<>();
    for (Protocol.EqualityDeletes deletes : file.equalityDeletes()) {
      KeyColumns keys = plan.keys(deletes.keys());
      StructType compared = plan.compared(deletes.keys());
      addConstants(constants, file, compared);
      equalityDeletes.add(
          new EqualityDeletes(
              compared, List.copyOf(keys.fieldIds()), plan.deleteFiles(deletes.files())));
    }
    return new FileTask(
        file.path(),
        plan.share(file.format()),
        0,
        0,
        true,
        FileRequest.UNKNOWN,
        file.specId(),
        file.partition() == null
            ? null
            : plan.share(values(file.partition(), plan.partition())),
        plan.share(constants),
        file.deletes() == null ? null : plan.deletes(file.deletes()),
        positionDeleteFiles(file.positionDeleteFiles(), plan),
        plan.share(equalityDeletes));
  }

  /** A task for a part of the file. */
  FileTask part(long start, long length, boolean last, long rows) {
    return new FileTask(
        path,
        format,
        start,
        length,
        last,
        rows,
        specId,
        partition,
        constants,
        deletes,
        positionDeleteFiles,
        equalityDeletes);
  }

  /**
   * The number of bytes to read: a manifest may state too small a size, which must not leave out
   * rows.
   */
  long bytes() {
    return last ? FileRequest.TO_THE_END - start : length;
  }

  private static PositionDeletes.Files positionDeleteFiles(
      PositionDeleteFiles files, PlannedTasks plan) {
    return files == null
        ? null
        : new PositionDeletes.Files(files.path(), plan.deleteFiles(files.files()));
  }

  private static Map<String, Object> values(Map<String, JsonNode> partition, StructType wanted) {
    Map<String, Object> values = new HashMap<>();
    for (StructField field : wanted.fields()) {
      values.put(field.name(), Values.fromJson(partition.get(field.name()), field.dataType()));
    }
    return values;
  }

  private static void addConstants(
      Map<Integer, Object> constants, PlannedFile file, StructType columns) {
    for (StructField column : columns.fields()) {
      String id = Integer.toString(Schemas.id(column));
      if (file.constants().containsKey(id)) {
        constants.put(
            Schemas.id(column), Values.fromJson(file.constants().get(id), column.dataType()));
      }
    }
  }
}
