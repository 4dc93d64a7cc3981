package org.icecomb.spark.write;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.icecomb.spark.planner.Protocol;
import org.icecomb.spark.planner.Protocol.DataLocation;
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
        instructions.location(),
        instructions.operationId(),
        instructions.fanout());
  }

  /** The settings of position deletes, whose folders depend on their data files. */
  static WriteSettings ofDeletes(WriteInstructions instructions) {
    return new WriteSettings(
        FileSettings.of(instructions.deletes().files()),
        List.of(),
        instructions.location(),
        instructions.operationId(),
        instructions.fanout());
  }

  /**
   * The location of a new file. The folders of a hash depend on its name, which only the task knows.
   *
   * @param partition the folders of its partition, each with a trailing slash
   */
  String locationOf(String partition, String file) {
    String root = location.root();
    if (!location.hashed()) {
      return root + "/" + partition + file;
    }
    String context = location.context();
    String name = location.partitionedPaths() ? partition + file : file;
    if (context != null) {
      return root + "/" + hash(name) + "/" + context + "/" + name;
    }
    return root + "/" + hash(name) + (location.partitionedPaths() ? "/" : "-") + name;
  }

  /** The last 20 bits of the name's hash as three folders of 4 bits and the beginning of a name. */
  private static String hash(String name) {
    byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
    int hash =
        Murmur3_x86_32.hashUnsafeBytes2(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 0);
    String bits = Integer.toBinaryString(hash | 0xFFF00000).substring(12);
    return String.join(
        "/", bits.substring(0, 4), bits.substring(4, 8), bits.substring(8, 12), bits.substring(12));
  }
}
