package org.icecomb.spark.read;

import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Uuids;

/** UUIDs as text for Spark, over the 16 bytes in files. */
final class UuidColumnVector extends WrappedColumnVector {

  private UuidColumnVector(ColumnVector bytes) {
    super(bytes, DataTypes.StringType);
  }

  /** The vector with its uuids as text: the vector itself if there are none. */
  static ColumnVector over(ColumnVector vector, StructField column) {
    return NestedColumnVector.converted(
        vector,
        column,
        (values, type, mark) -> mark.isUuid() ? new UuidColumnVector(values) : null);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return isNullAt(row) ? null : UTF8String.fromString(Uuids.text(vector.getBinary(row)));
  }

  @Override
  public byte[] getBinary(int row) {
    UTF8String text = getUTF8String(row);
    return text == null ? null : text.getBytes();
  }
}
