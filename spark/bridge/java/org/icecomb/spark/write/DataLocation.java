package org.icecomb.spark.write;

import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.icecomb.spark.planner.Protocol;

/**
 * The location of a table's data files, from the planner.
 *
 * <p>The folders of a hash depend on the file's name, which only the task knows.
 */
record DataLocation(Protocol.DataLocation place) implements Serializable {

  /**
   * The location of a new file.
   *
   * @param partition the folders of its partition, each with a trailing slash
   */
  String of(String partition, String file) {
    String root = place.root();
    if (!place.hashed()) {
      return root + "/" + partition + file;
    }
    String context = place.context();
    String name = place.partitionedPaths() ? partition + file : file;
    if (context != null) {
      return root + "/" + hash(name) + "/" + context + "/" + name;
    }
    return root + "/" + hash(name) + (place.partitionedPaths() ? "/" : "-") + name;
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
