package org.icecomb.spark.read;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Some rows of another vector, in order. */
final class SelectedColumnVector extends ColumnVector {

  private final ColumnVector vector;
  private final int[] rows;

  SelectedColumnVector(ColumnVector vector, int[] rows) {
    super(vector.dataType());
    this.vector = vector;
    this.rows = rows;
  }

  /** The vector belongs to the reader, which goes on using it. */
  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return vector.hasNull();
  }

  @Override
  public int numNulls() {
    int nulls = 0;
    for (int row : rows) {
      nulls += vector.isNullAt(row) ? 1 : 0;
    }
    return nulls;
  }

  @Override
  public boolean isNullAt(int row) {
    return vector.isNullAt(rows[row]);
  }

  @Override
  public boolean getBoolean(int row) {
    return vector.getBoolean(rows[row]);
  }

  @Override
  public byte getByte(int row) {
    return vector.getByte(rows[row]);
  }

  @Override
  public short getShort(int row) {
    return vector.getShort(rows[row]);
  }

  @Override
  public int getInt(int row) {
    return vector.getInt(rows[row]);
  }

  @Override
  public long getLong(int row) {
    return vector.getLong(rows[row]);
  }

  @Override
  public float getFloat(int row) {
    return vector.getFloat(rows[row]);
  }

  @Override
  public double getDouble(int row) {
    return vector.getDouble(rows[row]);
  }

  @Override
  public ColumnarArray getArray(int row) {
    return vector.getArray(rows[row]);
  }

  @Override
  public ColumnarMap getMap(int row) {
    return vector.getMap(rows[row]);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return vector.getDecimal(rows[row], precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return vector.getUTF8String(rows[row]);
  }

  @Override
  public byte[] getBinary(int row) {
    return vector.getBinary(rows[row]);
  }

  /** A struct's row is looked up in its children, so they are selected in the same way. */
  @Override
  public ColumnVector getChild(int ordinal) {
    return new SelectedColumnVector(vector.getChild(ordinal), rows);
  }
}
