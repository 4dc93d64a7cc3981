package org.icecomb.spark.write;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.icecomb.spark.planner.Protocol;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/**
 * The planner's instructions for the tasks of a write.
 *
 * @param files the settings of files, whose columns have the order of the rows
 * @param location the location of data files
 * @param operationId part of every file name, so that two writes cannot collide
 * @param fanout whether files of several partitions are open at once
 */
record WriteSettings(
    FileSettings files,
    List<PartitionColumn> partition,
    DataLocation location,
    String operationId,
    boolean fanout)
    implements Serializable {

  static WriteSettings of(WriteInstructions instructions) {
    FileSettings files = FileSettings.of(instructions.files());
    List<PartitionColumn> partition = new ArrayList<>();
    for (Protocol.PartitionColumn field : instructions.partition()) {
      partition.add(PartitionColumn.of(field, files.schema()));
    }
    return new WriteSettings(
        files,
        partition,
        new DataLocation(instructions.location()),
        instructions.operationId(),
        instructions.fanout());
  }

  /** The settings of position deletes, whose folders depend on their data files. */
  static WriteSettings ofDeletes(WriteInstructions instructions) {
    return new WriteSettings(
        FileSettings.of(instructions.deletes().files()),
        List.of(),
        new DataLocation(instructions.location()),
        instructions.operationId(),
        instructions.fanout());
  }
}
