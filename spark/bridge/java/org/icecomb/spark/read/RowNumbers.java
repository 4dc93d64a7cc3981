package org.icecomb.spark.read;

import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;

/** The positions of the rows of a batch, in runs of consecutive ones. */
final class RowNumbers {

  private final OnHeapColumnVector vector = new OnHeapColumnVector(0, DataTypes.LongType);
  private int size;

  /** Replaces the positions by consecutive ones. */
  void set(long first, int count) {
    clear();
    add(first, count);
  }

  void clear() {
    vector.reset();
    size = 0;
  }

  void add(long first, int count) {
    vector.reserve(size + count);
    for (int i = 0; i < count; i++) {
      vector.putLong(size + i, first + i);
    }
    size += count;
  }

  int size() {
    return size;
  }

  ColumnVector vector() {
    return vector;
  }
}
