package org.icecomb.spark.read;

import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** A view of another vector, which passes on everything that a subclass does not change. */
abstract class WrappedColumnVector extends ColumnVector {

  protected final ColumnVector vector;

  WrappedColumnVector(ColumnVector vector, DataType type) {
    super(type);
    this.vector = vector;
  }

  /** The other vector's index of the given row. */
  protected int source(int row) {
    return row;
  }

  /** The first index of a row's elements or entries in the children of the reader's vector. */
  protected final int firstInside(int row) {
    int at = source(row);
    if (vector instanceof WrappedColumnVector inner) {
      return inner.firstInside(at);
    }
    return vector instanceof OrcVector orc
        ? orc.firstInside(at)
        : ((WritableColumnVector) vector).getArrayOffset(at);
  }

  /** The number of elements or entries of a row. */
  protected final int countInside(int row) {
    int at = source(row);
    if (vector instanceof WrappedColumnVector inner) {
      return inner.countInside(at);
    }
    return vector instanceof OrcVector orc
        ? orc.countInside(at)
        : ((WritableColumnVector) vector).getArrayLength(at);
  }

  /** Does nothing: the vector belongs to the reader, which continues to use it. */
  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return vector.hasNull();
  }

  @Override
  public int numNulls() {
    return vector.numNulls();
  }

  @Override
  public boolean isNullAt(int row) {
    return vector.isNullAt(source(row));
  }

  @Override
  public boolean getBoolean(int row) {
    return vector.getBoolean(source(row));
  }

  @Override
  public byte getByte(int row) {
    return vector.getByte(source(row));
  }

  @Override
  public short getShort(int row) {
    return vector.getShort(source(row));
  }

  @Override
  public int getInt(int row) {
    return vector.getInt(source(row));
  }

  @Override
  public long getLong(int row) {
    return vector.getLong(source(row));
  }

  @Override
  public float getFloat(int row) {
    return vector.getFloat(source(row));
  }

  @Override
  public double getDouble(int row) {
    return vector.getDouble(source(row));
  }

  @Override
  public ColumnarArray getArray(int row) {
    return vector.getArray(source(row));
  }

  @Override
  public ColumnarMap getMap(int row) {
    return vector.getMap(source(row));
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    return vector.getDecimal(source(row), precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return vector.getUTF8String(source(row));
  }

  @Override
  public byte[] getBinary(int row) {
    return vector.getBinary(source(row));
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return vector.getChild(ordinal);
  }
}
