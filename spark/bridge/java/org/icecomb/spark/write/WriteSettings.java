package org.icecomb.spark.write;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.icecomb.spark.planner.Protocol;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/**
 * The planner's instructions for the tasks of a write.
 *
 * @param files how files are written; rows come in the order of their columns
 * @param location where data files go
 * @param operationId part of every file name, so that no two writes can meet
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

  /** How position deletes are written; which folders they go to depends on their data files. */
  static WriteSettings ofDeletes(WriteInstructions instructions) {
    return new WriteSettings(
        FileSettings.of(instructions.deletes().files()),
        List.of(),
        new DataLocation(instructions.location()),
        instructions.operationId(),
        instructions.fanout());
  }
}
