package org.icecomb.spark.convert;

import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;

/**
 * Values that files store with a fixed length: uuids, which Spark has as text, and Iceberg's fixed.
 *
 * @param column the column's name for messages
 * @param length the length in bytes
 */
public record FixedLength(String column, boolean uuid, int length) {

  private static final String FIXED = "fixed[";
  private static final int UUID_BYTES = 16;

  /** The fixed length of a type; null if its values have variable length. */
  public static FixedLength of(TypeMark mark) {
    String type = mark.icebergType();
    if (type.equals("uuid")) {
      return new FixedLength(mark.name(), true, UUID_BYTES);
    }
    if (type.startsWith(FIXED)) {
      String length = type.substring(FIXED.length(), type.length() - 1);
      return new FixedLength(mark.name(), false, Integer.parseInt(length));
    }
    return null;
  }

  /** The bytes of a value that is not null. */
  public byte[] bytes(SpecializedGetters from, int ordinal) {
    if (uuid) {
      return Uuids.bytes(Uuids.parse(from.getUTF8String(ordinal).toString()));
    }
    byte[] value = from.getBinary(ordinal);
    check(column, length, value.length);
    return value;
  }

  /**
   * Checks that a value has its column's length.
   *
   * @throws IllegalArgumentException if it is shorter or longer
   */
  public static void check(String column, int length, int found) {
    if (found != length) {
      throw new IllegalArgumentException(
          "Column " + column + " takes " + length + " bytes, not " + found);
    }
  }
}
