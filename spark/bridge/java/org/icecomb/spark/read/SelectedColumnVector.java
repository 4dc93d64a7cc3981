package org.icecomb.spark.read;

import org.apache.spark.sql.vectorized.ColumnVector;

/** Selected rows of another vector, in order. */
final class SelectedColumnVector extends WrappedColumnVector {

  private final int[] rows;

  SelectedColumnVector(ColumnVector vector, int[] rows) {
    super(vector, vector.dataType());
    this.rows = rows;
  }

  @Override
  protected int source(int row) {
    return rows[row];
  }

  @Override
  public int numNulls() {
    int nulls = 0;
    for (int row : rows) {
      nulls += vector.isNullAt(row) ? 1 : 0;
    }
    return nulls;
  }

  /** A struct's row is looked up in its children, so they are selected in the same way. */
  @Override
  public ColumnVector getChild(int ordinal) {
    return new SelectedColumnVector(vector.getChild(ordinal), rows);
  }
}
