package org.icecomb.spark.read;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * Values of the type in a file, converted to the wider type that the table has now (specification,
 * "Schema Evolution": int to long, float to double, date to timestamp, more digits of a decimal),
 * or times to the nanoseconds of {@link Nanoseconds#stored}.
 */
final class WidenedColumnVector extends WrappedColumnVector {

  private static final long MICROS_PER_DAY = 86_400_000_000L;

  private final DataType stored;

  private WidenedColumnVector(ColumnVector vector, DataType stored, DataType wanted) {
    super(vector, wanted);
    this.stored = stored;
  }

  /** Whether values of the one type must be converted to the other. */
  static boolean widens(DataType stored, DataType wanted) {
    return stored instanceof IntegerType && wanted instanceof LongType
        || stored instanceof FloatType && wanted instanceof DoubleType
        || stored instanceof DateType && wanted instanceof TimestampNTZType
        || (stored instanceof DateType || isMicros(stored)) && wanted instanceof LongType
        || stored instanceof DecimalType && wanted instanceof DecimalType && !stored.equals(wanted);
  }

  /** Whether the file may have had nanoseconds: INT96 times have them, and are read without. */
  boolean isCut() {
    return stored instanceof TimestampType;
  }

  private static boolean isMicros(DataType stored) {
    return stored instanceof TimestampType || stored instanceof TimestampNTZType;
  }

  /** The microseconds of a day since 1970; days beyond their range are an error. */
  static long midnight(long day) {
    return Math.multiplyExact(day, MICROS_PER_DAY);
  }

  /**
   * The vector with the wanted type: itself if nothing in it was widened. Stored structs may have
   * further fields behind the wanted ones.
   */
  static ColumnVector over(ColumnVector vector, DataType stored, DataType wanted) {
    if (widens(stored, wanted)) {
      return new WidenedColumnVector(vector, stored, wanted);
    }
    return widensInside(stored, wanted) ? nested(vector, stored, wanted) : vector;
  }

  private static ColumnVector nested(ColumnVector vector, DataType stored, DataType wanted) {
    DataType[] parts = parts(stored);
    DataType[] wantedParts = parts(wanted);
    ColumnVector[] children = new ColumnVector[wantedParts.length];
    for (int i = 0; i < children.length; i++) {
      children[i] = over(vector.getChild(i), parts[i], wantedParts[i]);
    }
    return new NestedColumnVector(vector, wanted, children);
  }

  private static boolean widensInside(DataType stored, DataType wanted) {
    DataType[] parts = parts(stored);
    DataType[] wantedParts = parts(wanted);
    for (int i = 0; i < wantedParts.length; i++) {
      if (widens(parts[i], wantedParts[i]) || widensInside(parts[i], wantedParts[i])) {
        return true;
      }
    }
    return false;
  }

  /** The types of a vector's children. */
  private static DataType[] parts(DataType type) {
    if (type instanceof StructType struct) {
      DataType[] parts = new DataType[struct.size()];
      for (int i = 0; i < parts.length; i++) {
        parts[i] = struct.fields()[i].dataType();
      }
      return parts;
    }
    if (type instanceof ArrayType array) {
      return new DataType[] {array.elementType()};
    }
    return type instanceof MapType map
        ? new DataType[] {map.keyType(), map.valueType()}
        : new DataType[0];
  }

  @Override
  public long getLong(int row) {
    if (stored instanceof IntegerType) {
      return vector.getInt(row);
    }
    if (isNullAt(row)) {
      return 0;
    }
    long micros = isMicros(stored) ? vector.getLong(row) : midnight(vector.getInt(row));
    return type instanceof LongType ? Nanoseconds.of(micros) : micros;
  }

  @Override
  public double getDouble(int row) {
    return vector.getFloat(row);
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    if (isNullAt(row)) {
      return null;
    }
    DecimalType type = (DecimalType) stored;
    Decimal value = vector.getDecimal(row, type.precision(), type.scale());
    value.changePrecision(precision, scale);
    return value;
  }
}
