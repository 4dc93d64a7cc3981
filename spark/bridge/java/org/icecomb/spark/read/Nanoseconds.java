package org.icecomb.spark.read;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.TypeMark;

/**
 * Timestamps in nanoseconds, which Spark is shown in microseconds.
 *
 * <p>Readers of files and constants have the nanoseconds as longs, which equality deletes compare;
 * only what a query gets is rounded down.
 */
final class Nanoseconds {

  private static final long PER_MICRO = 1000;
  private static final long PER_SECOND = 1_000_000_000;

  private Nanoseconds() {}

  /** The nanoseconds of microseconds; times that nanoseconds do not reach are an error. */
  static long of(long micros) {
    return Math.multiplyExact(micros, PER_MICRO);
  }

  /** The nanoseconds of seconds, rounded down, and nanoseconds beyond them. */
  static long of(long seconds, int more) {
    // The first second is not whole: its beginning is out of reach.
    return seconds < 0
        ? Math.addExact(Math.multiplyExact(seconds + 1, PER_SECOND), more - PER_SECOND)
        : Math.addExact(Math.multiplyExact(seconds, PER_SECOND), more);
  }

  /** The columns as they are read from files: longs where Spark is shown microseconds. */
  static StructType stored(StructType shown) {
    List<StructField> fields = new ArrayList<>();
    for (StructField field : shown.fields()) {
      DataType type = stored(field.dataType(), TypeMark.of(field));
      fields.add(new StructField(field.name(), type, field.nullable(), field.metadata()));
    }
    return Schemas.struct(fields);
  }

  private static DataType stored(DataType shown, TypeMark mark) {
    if (mark.isNanoseconds()) {
      return DataTypes.LongType;
    }
    if (shown instanceof StructType struct) {
      return stored(struct);
    }
    if (shown instanceof ArrayType array) {
      return new ArrayType(stored(array.elementType(), mark.element()), array.containsNull());
    }
    if (shown instanceof MapType map) {
      return new MapType(
          stored(map.keyType(), mark.key()),
          stored(map.valueType(), mark.value()),
          map.valueContainsNull());
    }
    return shown;
  }

  /**
   * The vector with microseconds: the vector itself if there are no nanoseconds.
   *
   * @param column the column as Spark is shown it
   */
  static ColumnVector shown(ColumnVector vector, StructField column) {
    return shown(vector, column.dataType(), TypeMark.of(column));
  }

  private static ColumnVector shown(ColumnVector vector, DataType type, TypeMark mark) {
    if (mark.isNanoseconds()) {
      return new Micros(vector, type);
    }
    if (vector instanceof ConstantColumnVector && vector.hasNull()) {
      return vector;
    }
    if (type instanceof StructType struct) {
      ColumnVector[] children = new ColumnVector[struct.size()];
      boolean changed = false;
      for (int i = 0; i < children.length; i++) {
        children[i] = shown(vector.getChild(i), struct.fields()[i]);
        changed |= children[i] != vector.getChild(i);
      }
      return changed ? new NestedColumnVector(vector, type, children) : vector;
    }
    if (type instanceof ArrayType array) {
      ColumnVector elements = shown(vector.getChild(0), array.elementType(), mark.element());
      return elements == vector.getChild(0) ? vector : new NestedColumnVector(vector, type, elements);
    }
    if (type instanceof MapType map) {
      ColumnVector keys = shown(vector.getChild(0), map.keyType(), mark.key());
      ColumnVector values = shown(vector.getChild(1), map.valueType(), mark.value());
      return keys == vector.getChild(0) && values == vector.getChild(1)
          ? vector
          : new NestedColumnVector(vector, type, keys, values);
    }
    return vector;
  }

  private static final class Micros extends WrappedColumnVector {

    Micros(ColumnVector nanoseconds, DataType type) {
      super(nanoseconds, type);
    }

    @Override
    public long getLong(int row) {
      return Math.floorDiv(super.getLong(row), PER_MICRO);
    }
  }
}
