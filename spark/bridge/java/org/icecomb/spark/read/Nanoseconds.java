package org.icecomb.spark.read;

import java.util.ArrayList;
import java.util.List;
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
    boolean changed = false;
    for (StructField field : shown.fields()) {
      DataType type = stored(field.dataType(), TypeMark.of(field));
      changed |= type != field.dataType();
      fields.add(new StructField(field.name(), type, field.nullable(), field.metadata()));
    }
    return changed ? Schemas.struct(fields) : shown;
  }

  private static DataType stored(DataType shown, TypeMark mark) {
    if (mark.isNanoseconds()) {
      return DataTypes.LongType;
    }
    if (shown instanceof StructType struct) {
      return stored(struct);
    }
    if (shown instanceof ArrayType array) {
      DataType element = stored(array.elementType(), mark.element());
      return element == array.elementType() ? array : new ArrayType(element, array.containsNull());
    }
    if (shown instanceof MapType map) {
      DataType key = stored(map.keyType(), mark.key());
      DataType value = stored(map.valueType(), mark.value());
      return key == map.keyType() && value == map.valueType()
          ? map
          : new MapType(key, value, map.valueContainsNull());
    }
    return shown;
  }

  /**
   * The vector with microseconds: the vector itself if there are no nanoseconds.
   *
   * @param column the column as Spark is shown it
   */
  static ColumnVector shown(ColumnVector vector, StructField column) {
    return NestedColumnVector.converted(
        vector,
        column,
        (nanoseconds, type, mark) ->
            mark.isNanoseconds() ? new Micros(nanoseconds, type) : null);
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
