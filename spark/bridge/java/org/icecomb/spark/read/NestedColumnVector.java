package org.icecomb.spark.read;

import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;

/** Structs, lists or maps whose children are converted. */
final class NestedColumnVector extends WrappedColumnVector {

  private final ColumnVector[] children;

  NestedColumnVector(ColumnVector vector, DataType type, ColumnVector... children) {
    super(vector, type);
    this.children = children;
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return children[ordinal];
  }

  @Override
  public ColumnarArray getArray(int row) {
    return new ColumnarArray(children[0], firstInside(row), countInside(row));
  }

  @Override
  public ColumnarMap getMap(int row) {
    return new ColumnarMap(children[0], children[1], firstInside(row), countInside(row));
  }
}
