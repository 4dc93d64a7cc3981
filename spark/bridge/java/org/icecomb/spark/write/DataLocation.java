package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.icecomb.spark.planner.Json;

/**
 * Where the data files of a table go, as the planner says.
 *
 * <p>The folders of a hash depend on the file's name, which only the task knows.
 *
 * @param root the folder they are all below
 * @param hashed whether a hash stands before each path, which spreads files over an object store
 * @param partitionedPaths whether a hashed path names the partition
 * @param context what names the table in hashed paths outside its folder, else null
 */
record DataLocation(String root, boolean hashed, boolean partitionedPaths, String context)
    implements Serializable {

  static DataLocation parse(JsonNode location) {
    return new DataLocation(
        location.get("root").asText(),
        location.get("hashed").asBoolean(),
        location.get("partitioned_paths").asBoolean(),
        Json.textOrNull(location, "context"));
  }

  /**
   * The location of a new file.
   *
   * @param partition the folders of its partition, each with a slash at its end
   */
  String of(String partition, String file) {
    if (!hashed) {
      return root + "/" + partition + file;
    }
    String name = partitionedPaths ? partition + file : file;
    if (context != null) {
      return root + "/" + hash(name) + "/" + context + "/" + name;
    }
    return root + "/" + hash(name) + (partitionedPaths ? "/" : "-") + name;
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
