package org.icecomb.spark.read;

import java.util.function.IntSupplier;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Uuids;

/**
 * A Spark vector over one that ORC's reader fills, without a copy.
 *
 * <p>Spark's own class is not accessible, and converts timestamps by the JVM's zone and calendar.
 * This one returns micro- or nanoseconds as requested from ORC: in UTC, by the Gregorian calendar.
 */
abstract class OrcVector extends ColumnVector {

  private final org.apache.hadoop.hive.ql.exec.vector.ColumnVector source;
  private final IntSupplier size;

  private OrcVector(
      DataType type, org.apache.hadoop.hive.ql.exec.vector.ColumnVector source, IntSupplier size) {
    super(type);
    this.source = source;
    this.size = size;
  }

  final int place(int row) {
    return source.isRepeating ? 0 : row;
  }

  /** Does nothing: the vector belongs to the reader, which continues to use it. */
  @Override
  public void close() {}

  @Override
  public boolean hasNull() {
    return !source.noNulls;
  }

  @Override
  public int numNulls() {
    int nulls = 0;
    if (hasNull()) {
      for (int row = 0; row < size.getAsInt(); row++) {
        nulls += isNullAt(row) ? 1 : 0;
      }
    }
    return nulls;
  }

  @Override
  public boolean isNullAt(int row) {
    return !source.noNulls && source.isNull[place(row)];
  }

  @Override
  public boolean getBoolean(int row) {
    return getLong(row) != 0;
  }

  @Override
  public byte getByte(int row) {
    return (byte) getLong(row);
  }

  @Override
  public short getShort(int row) {
    return (short) getLong(row);
  }

  @Override
  public int getInt(int row) {
    return (int) getLong(row);
  }

  @Override
  public long getLong(int row) {
    throw otherType();
  }

  @Override
  public float getFloat(int row) {
    return (float) getDouble(row);
  }

  @Override
  public double getDouble(int row) {
    throw otherType();
  }

  @Override
  public ColumnarArray getArray(int row) {
    throw otherType();
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw otherType();
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw otherType();
  }

  @Override
  public UTF8String getUTF8String(int row) {
    throw otherType();
  }

  @Override
  public byte[] getBinary(int row) {
    throw otherType();
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    throw otherType();
  }

  /** The first index of a row's elements or entries in the children. */
  int firstInside(int row) {
    throw otherType();
  }

  /** The number of elements or entries of a row. */
  int countInside(int row) {
    throw otherType();
  }

  private UnsupportedOperationException otherType() {
    return new UnsupportedOperationException("a value of another type than " + type.catalogString());
  }

  /** Booleans, integers and dates. */
  static class Longs extends OrcVector {

    private final LongColumnVector longs;

    Longs(DataType type, LongColumnVector longs, IntSupplier size) {
      super(type, longs, size);
      this.longs = longs;
    }

    @Override
    public long getLong(int row) {
      return longs.vector[place(row)];
    }
  }

  /** Dates of a column that is a timestamp now. */
  static final class Midnights extends Longs {

    Midnights(DataType type, LongColumnVector days, IntSupplier size) {
      super(type, days, size);
    }

    @Override
    public long getLong(int row) {
      return WidenedColumnVector.midnight(super.getLong(row));
    }
  }

  /** Doubles, and floats, which ORC reads as doubles. */
  static final class Doubles extends OrcVector {

    private final DoubleColumnVector doubles;

    Doubles(DataType type, DoubleColumnVector doubles, IntSupplier size) {
      super(type, doubles, size);
      this.doubles = doubles;
    }

    @Override
    public double getDouble(int row) {
      return doubles.vector[place(row)];
    }
  }

  /** Text and bytes. */
  static final class Bytes extends OrcVector {

    private final BytesColumnVector bytes;

    Bytes(DataType type, BytesColumnVector bytes, IntSupplier size) {
      super(type, bytes, size);
      this.bytes = bytes;
    }

    @Override
    public UTF8String getUTF8String(int row) {
      if (isNullAt(row)) {
        return null;
      }
      int place = place(row);
      return UTF8String.fromBytes(bytes.vector[place], bytes.start[place], bytes.length[place]);
    }

    @Override
    public byte[] getBinary(int row) {
      if (isNullAt(row)) {
        return null;
      }
      int place = place(row);
      byte[] value = new byte[bytes.length[place]];
      System.arraycopy(bytes.vector[place], bytes.start[place], value, 0, value.length);
      return value;
    }
  }

  /** UUIDs: 16 bytes, shown to Spark as text. */
  static final class UuidTexts extends OrcVector {

    private final Bytes bytes;

    UuidTexts(DataType type, BytesColumnVector source, IntSupplier size) {
      super(type, source, size);
      this.bytes = new Bytes(type, source, size);
    }

    @Override
    public UTF8String getUTF8String(int row) {
      byte[] value = bytes.getBinary(row);
      return value == null ? null : UTF8String.fromString(Uuids.text(value));
    }

    @Override
    public byte[] getBinary(int row) {
      UTF8String text = getUTF8String(row);
      return text == null ? null : text.getBytes();
    }
  }

  static final class Decimals extends OrcVector {

    private final DecimalColumnVector decimals;

    Decimals(DataType type, DecimalColumnVector decimals, IntSupplier size) {
      super(type, decimals, size);
      this.decimals = decimals;
    }

    @Override
    public Decimal getDecimal(int row, int precision, int scale) {
      if (isNullAt(row)) {
        return null;
      }
      HiveDecimalWritable value = decimals.vector[place(row)];
      return precision <= Decimal.MAX_LONG_DIGITS()
          ? Decimal.createUnsafe(value.serialize64(scale), precision, scale)
          : Decimal.apply(value.getHiveDecimal().bigDecimalValue(), precision, scale);
    }
  }

  /** Microseconds since 1970. */
  static class Timestamps extends OrcVector {

    private final TimestampColumnVector timestamps;

    Timestamps(DataType type, TimestampColumnVector timestamps, IntSupplier size) {
      super(type, timestamps, size);
      this.timestamps = timestamps;
    }

    @Override
    public long getLong(int row) {
      int place = place(row);
      return since1970(
          Math.floorDiv(timestamps.time[place], 1000L), timestamps.nanos[place]);
    }

    long since1970(long seconds, int nanoseconds) {
      return Math.addExact(Math.multiplyExact(seconds, 1_000_000L), nanoseconds / 1000L);
    }
  }

  /** Nanoseconds since 1970. */
  static final class FineTimestamps extends Timestamps {

    FineTimestamps(DataType type, TimestampColumnVector timestamps, IntSupplier size) {
      super(type, timestamps, size);
    }

    @Override
    public long getLong(int row) {
      // what stands at a null may be out of range
      return isNullAt(row) ? 0 : super.getLong(row);
    }

    @Override
    long since1970(long seconds, int nanoseconds) {
      return Nanoseconds.of(seconds, nanoseconds);
    }
  }

  static final class Lists extends OrcVector {

    private final ListColumnVector lists;
    private final ColumnVector elements;

    Lists(ArrayType type, ListColumnVector lists, ColumnVector elements, IntSupplier size) {
      super(type, lists, size);
      this.lists = lists;
      this.elements = elements;
    }

    @Override
    int firstInside(int row) {
      return (int) lists.offsets[place(row)];
    }

    @Override
    int countInside(int row) {
      return (int) lists.lengths[place(row)];
    }

    @Override
    public ColumnarArray getArray(int row) {
      return isNullAt(row)
          ? null
          : new ColumnarArray(elements, firstInside(row), countInside(row));
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      return elements;
    }
  }

  static final class Maps extends OrcVector {

    private final MapColumnVector maps;
    private final ColumnVector keys;
    private final ColumnVector values;

    Maps(
        MapType type,
        MapColumnVector maps,
        ColumnVector keys,
        ColumnVector values,
        IntSupplier size) {
      super(type, maps, size);
      this.maps = maps;
      this.keys = keys;
      this.values = values;
    }

    @Override
    int firstInside(int row) {
      return (int) maps.offsets[place(row)];
    }

    @Override
    int countInside(int row) {
      return (int) maps.lengths[place(row)];
    }

    @Override
    public ColumnarMap getMap(int row) {
      return isNullAt(row)
          ? null
          : new ColumnarMap(keys, values, firstInside(row), countInside(row));
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      return ordinal == 0 ? keys : values;
    }
  }

  static final class Structs extends OrcVector {

    private final ColumnVector[] fields;

    Structs(
        StructType type,
        org.apache.hadoop.hive.ql.exec.vector.ColumnVector structs,
        ColumnVector[] fields,
        IntSupplier size) {
      super(type, structs, size);
      this.fields = fields;
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      return fields[ordinal];
    }
  }
}
