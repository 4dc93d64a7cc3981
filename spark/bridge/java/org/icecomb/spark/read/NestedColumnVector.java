package org.icecomb.spark.read;

import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.icecomb.spark.convert.TypeMark;

/** Structs, lists or maps whose children are converted. */
final class NestedColumnVector extends WrappedColumnVector {

  private final ColumnVector[] children;

  /** A conversion of the values that a column has at any depth. */
  interface Conversion {

    /** The converted values of a type, or null if they stay as they are. */
    ColumnVector of(ColumnVector values, DataType type, TypeMark mark);
  }

  NestedColumnVector(ColumnVector vector, DataType type, ColumnVector... children) {
    super(vector, type);
    this.children = children;
  }

  /**
   * The vector with converted values: the vector itself if there are none to convert.
   *
   * @param column the column as Spark is shown it
   */
  static ColumnVector converted(ColumnVector vector, StructField column, Conversion conversion) {
    return converted(vector, column.dataType(), TypeMark.of(column), conversion);
  }

  private static ColumnVector converted(
      ColumnVector vector, DataType type, TypeMark mark, Conversion conversion) {
    ColumnVector own = conversion.of(vector, type, mark);
    if (own != null) {
      return own;
    }
    if (vector instanceof ConstantColumnVector && vector.hasNull()) {
      return vector;
    }
    if (type instanceof StructType struct) {
      ColumnVector[] children = new ColumnVector[struct.size()];
      boolean changed = false;
      for (int i = 0; i < children.length; i++) {
        children[i] = converted(vector.getChild(i), struct.fields()[i], conversion);
        changed |= children[i] != vector.getChild(i);
      }
      return changed ? new NestedColumnVector(vector, type, children) : vector;
    }
    if (type instanceof ArrayType array) {
      ColumnVector elements =
          converted(vector.getChild(0), array.elementType(), mark.element(), conversion);
      return elements == vector.getChild(0) ? vector : new NestedColumnVector(vector, type, elements);
    }
    if (type instanceof MapType map) {
      ColumnVector keys = converted(vector.getChild(0), map.keyType(), mark.key(), conversion);
      ColumnVector values = converted(vector.getChild(1), map.valueType(), mark.value(), conversion);
      return keys == vector.getChild(0) && values == vector.getChild(1)
          ? vector
          : new NestedColumnVector(vector, type, keys, values);
    }
    return vector;
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
