package org.icecomb.spark.read;

import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;

/** The positions of the rows of a batch, which are consecutive in the file. */
final class RowNumbers {

  private final OnHeapColumnVector vector = new OnHeapColumnVector(0, DataTypes.LongType);

  void set(long first, int count) {
    vector.reset();
    vector.reserve(count);
    for (int i = 0; i < count; i++) {
      vector.putLong(i, first + i);
    }
  }

  ColumnVector vector() {
    return vector;
  }
}
