package org.icecomb.spark.read;

import java.nio.ByteBuffer;
import java.util.UUID;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** UUIDs as the text that Spark shows, over the 16 bytes that files hold. */
final class UuidColumnVector extends ColumnVector {

  private final ColumnVector bytes;

  UuidColumnVector(ColumnVector bytes) {
    super(DataTypes.StringType);
    this.bytes = bytes;
  }

  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return bytes.hasNull();
  }

  @Override
  public int numNulls() {
    return bytes.numNulls();
  }

  @Override
  public boolean isNullAt(int row) {
    return bytes.isNullAt(row);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    if (isNullAt(row)) {
      return null;
    }
    ByteBuffer buffer = ByteBuffer.wrap(bytes.getBinary(row));
    return UTF8String.fromString(new UUID(buffer.getLong(), buffer.getLong()).toString());
  }

  @Override
  public byte[] getBinary(int row) {
    UTF8String text = getUTF8String(row);
    return text == null ? null : text.getBytes();
  }

  @Override
  public boolean getBoolean(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public byte getByte(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public short getShort(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public int getInt(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public long getLong(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public float getFloat(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public double getDouble(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw new UnsupportedOperationException();
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw new UnsupportedOperationException();
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw new UnsupportedOperationException();
  }
}
