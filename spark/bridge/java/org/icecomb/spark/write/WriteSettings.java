package org.icecomb.spark.write;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol;
import org.icecomb.spark.planner.Protocol.DeleteInstructions;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/**
 * The planner's instructions for the tasks of a write.
 *
 * @param schema the table's schema with ids; rows come in its column order
 * @param location where data files go
 * @param operationId part of every file name, so that no two writes can meet
 * @param fanout whether files of several partitions are open at once
 * @param targetBytes size at which a new file is begun
 * @param parquet settings of the Parquet writer by their Hadoop names
 * @param metrics Iceberg's metrics mode of columns that have one, by field id
 * @param footer key and value pairs for the footer of every file
 */
record WriteSettings(
    StructType schema,
    List<PartitionColumn> partition,
    DataLocation location,
    String operationId,
    boolean fanout,
    long targetBytes,
    Map<String, String> parquet,
    Map<String, String> metrics,
    Map<String, String> footer)
    implements Serializable {

  static WriteSettings of(WriteInstructions instructions) {
    StructType schema = Schemas.parse(instructions.schema());
    List<PartitionColumn> partition = new ArrayList<>();
    for (Protocol.PartitionColumn field : instructions.partition()) {
      partition.add(PartitionColumn.of(field, schema));
    }
    return new WriteSettings(
        schema,
        partition,
        new DataLocation(instructions.location()),
        instructions.operationId(),
        instructions.fanout(),
        instructions.targetFileBytes(),
        instructions.writer(),
        instructions.metrics(),
        instructions.footerMetadata());
  }

  /** How position deletes are written; which folders they go to depends on their data files. */
  static WriteSettings ofDeletes(WriteInstructions instructions) {
    DeleteInstructions deletes = instructions.deletes();
    return new WriteSettings(
        Schemas.parse(deletes.schema()),
        List.of(),
        new DataLocation(instructions.location()),
        instructions.operationId(),
        instructions.fanout(),
        deletes.targetFileBytes(),
        deletes.writer(),
        deletes.metrics(),
        Map.of());
  }
}
