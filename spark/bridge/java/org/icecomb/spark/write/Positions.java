package org.icecomb.spark.write;

import java.util.Arrays;

/** A growing list of positions of rows in a data file. */
final class Positions {

  private long[] values = new long[16];
  private int count;
  private boolean sorted = true;

  void add(long position) {
    if (count == values.length) {
      values = Arrays.copyOf(values, Math.multiplyExact(count, 2));
    }
    sorted = sorted && (count == 0 || values[count - 1] < position);
    values[count++] = position;
  }

  void addAll(long[] positions) {
    for (long position : positions) {
      add(position);
    }
  }

  /** The distinct positions, ascending. */
  long[] sorted() {
    long[] found = Arrays.copyOf(values, count);
    return sorted ? found : Arrays.stream(found).sorted().distinct().toArray();
  }
}
