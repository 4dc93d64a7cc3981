package org.icecomb.spark.read;

import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Row lineage: what a file states of its rows, and where it states nothing, what these inherit. */
final class LineageColumnVector extends WrappedColumnVector {

  private final ColumnVector stated;
  private final ColumnVector positions;
  private final long first;

  /**
   * @param stated the column of the file; null if it has none
   * @param first what the first row inherits
   * @param positions the positions of rows, which are added to that; null if all inherit the same
   */
  LineageColumnVector(ColumnVector stated, long first, ColumnVector positions) {
    super(stated, DataTypes.LongType);
    this.stated = stated;
    this.first = first;
    this.positions = positions;
  }

  @Override
  public boolean hasNull() {
    return false;
  }

  @Override
  public int numNulls() {
    return 0;
  }

  @Override
  public boolean isNullAt(int row) {
    return false;
  }

  @Override
  public long getLong(int row) {
    if (stated != null && !stated.isNullAt(row)) {
      return stated.getLong(row);
    }
    return positions == null ? first : first + positions.getLong(row);
  }
}
