package org.icecomb.spark.convert;

import java.nio.ByteBuffer;
import java.util.UUID;

/** Conversion of UUIDs between Spark's text and the 16 bytes in files. */
public final class Uuids {

  private static final int TEXT_LENGTH = 36;

  private Uuids() {}

  /**
   * Parses a UUID in the full form only: Java also accepts {@code 1-1-1-1-1}.
   *
   * @throws IllegalArgumentException if the text is not a UUID
   */
  public static UUID parse(String text) {
    if (text.length() != TEXT_LENGTH) {
      throw new IllegalArgumentException("Not a uuid: '" + text + "'");
    }
    return UUID.fromString(text);
  }

  public static byte[] bytes(UUID uuid) {
    return ByteBuffer.allocate(16)
        .putLong(uuid.getMostSignificantBits())
        .putLong(uuid.getLeastSignificantBits())
        .array();
  }

  public static String text(byte[] bytes) {
    ByteBuffer buffer = ByteBuffer.wrap(bytes);
    return new UUID(buffer.getLong(), buffer.getLong()).toString();
  }
}
