package org.icecomb.spark.functions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.functions.PartitionTransform.Kind;

/**
 * A partition transform of values of one type. Each type has a class of its own with a static
 * {@code invoke}, which Spark's generated code calls directly, without a row; if a primitive
 * parameter is null, Spark returns null without a call.
 */
public abstract class BoundFunction implements ScalarFunction<Object> {

  static final String CANONICAL_PREFIX = "icecomb.";

  private final String name;
  private final Kind kind;
  private final DataType source;
  private transient PartitionTransform transform;

  BoundFunction(String name, Kind kind, DataType source) {
    this.name = name;
    this.kind = kind;
    this.source = source;
  }

  /** The function for values of a type, or null if there is none. */
  static BoundFunction of(String name, Kind kind, DataType source) {
    boolean date = source instanceof DateType;
    return switch (kind) {
      case YEAR -> date ? new YearsOfDate(name, source) : new YearsOfTimestamp(name, source);
      case MONTH -> date ? new MonthsOfDate(name, source) : new MonthsOfTimestamp(name, source);
      case DAY -> date ? new DaysOfDate(name, source) : new DaysOfTimestamp(name, source);
      case HOUR -> new HoursOfTimestamp(name, source);
      case BUCKET -> bucket(name, source);
      case TRUNCATE -> truncate(name, source);
      default -> null;
    };
  }

  private static BoundFunction bucket(String name, DataType source) {
    if (source instanceof IntegerType || source instanceof DateType) {
      return new BucketInt(name, source);
    }
    if (source instanceof StringType) {
      return new BucketString(name, source);
    }
    if (source instanceof DecimalType) {
      return new BucketDecimal(name, source);
    }
    return source instanceof BinaryType
        ? new BucketBinary(name, source)
        : new BucketLong(name, source);
  }

  private static BoundFunction truncate(String name, DataType source) {
    if (source instanceof ByteType) {
      return new TruncateByte(name, source);
    }
    if (source instanceof ShortType) {
      return new TruncateShort(name, source);
    }
    if (source instanceof IntegerType) {
      return new TruncateInt(name, source);
    }
    if (source instanceof LongType) {
      return new TruncateLong(name, source);
    }
    if (source instanceof DecimalType) {
      return new TruncateDecimal(name, source);
    }
    return source instanceof BinaryType
        ? new TruncateBinary(name, source)
        : new TruncateString(name, source);
  }

  private boolean hasParameter() {
    return kind == Kind.BUCKET || kind == Kind.TRUNCATE;
  }

  @Override
  public DataType[] inputTypes() {
    return hasParameter()
        ? new DataType[] {DataTypes.IntegerType, source}
        : new DataType[] {source};
  }

  @Override
  public DataType resultType() {
    return new PartitionTransform(kind, 1, source).resultType();
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String canonicalName() {
    return CANONICAL_PREFIX + name + "(" + source.catalogString() + ")";
  }

  /** Used without generated code; the transform is re-created only if the parameter changes. */
  @Override
  public Object produceResult(InternalRow input) {
    int last = hasParameter() ? 1 : 0;
    if (input.isNullAt(last) || input.isNullAt(0)) {
      return null;
    }
    int parameter = hasParameter() ? input.getInt(0) : 0;
    PartitionTransform current = transform;
    if (current == null || current.parameter() != parameter) {
      current = new PartitionTransform(kind, parameter, source);
      transform = current;
    }
    return current.apply(input.get(last, source));
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof BoundFunction bound && bound.canonicalName().equals(canonicalName());
  }

  @Override
  public int hashCode() {
    return canonicalName().hashCode();
  }

  public static final class YearsOfDate extends BoundFunction {
    YearsOfDate(String name, DataType source) {
      super(name, Kind.YEAR, source);
    }

    public static int invoke(int days) {
      return PartitionTransform.year(days);
    }
  }

  public static final class YearsOfTimestamp extends BoundFunction {
    YearsOfTimestamp(String name, DataType source) {
      super(name, Kind.YEAR, source);
    }

    public static int invoke(long micros) {
      return PartitionTransform.year(PartitionTransform.day(micros));
    }
  }

  public static final class MonthsOfDate extends BoundFunction {
    MonthsOfDate(String name, DataType source) {
      super(name, Kind.MONTH, source);
    }

    public static int invoke(int days) {
      return PartitionTransform.month(days);
    }
  }

  public static final class MonthsOfTimestamp extends BoundFunction {
    MonthsOfTimestamp(String name, DataType source) {
      super(name, Kind.MONTH, source);
    }

    public static int invoke(long micros) {
      return PartitionTransform.month(PartitionTransform.day(micros));
    }
  }

  public static final class DaysOfDate extends BoundFunction {
    DaysOfDate(String name, DataType source) {
      super(name, Kind.DAY, source);
    }

    public static int invoke(int days) {
      return days;
    }
  }

  public static final class DaysOfTimestamp extends BoundFunction implements ReducibleTime {
    DaysOfTimestamp(String name, DataType source) {
      super(name, Kind.DAY, source);
    }

    public static int invoke(long micros) {
      return PartitionTransform.day(micros);
    }
  }

  public static final class HoursOfTimestamp extends BoundFunction implements ReducibleTime {
    HoursOfTimestamp(String name, DataType source) {
      super(name, Kind.HOUR, source);
    }

    public static int invoke(long micros) {
      return PartitionTransform.hour(micros);
    }
  }

  public static final class BucketInt extends BoundFunction implements ReducibleBucket {
    BucketInt(String name, DataType source) {
      super(name, Kind.BUCKET, source);
    }

    public static int invoke(int buckets, int value) {
      return PartitionTransform.bucket(buckets, value);
    }
  }

  public static final class BucketLong extends BoundFunction implements ReducibleBucket {
    BucketLong(String name, DataType source) {
      super(name, Kind.BUCKET, source);
    }

    public static int invoke(int buckets, long value) {
      return PartitionTransform.bucket(buckets, value);
    }
  }

  public static final class BucketString extends BoundFunction implements ReducibleBucket {
    BucketString(String name, DataType source) {
      super(name, Kind.BUCKET, source);
    }

    public static Integer invoke(int buckets, UTF8String value) {
      return value == null ? null : PartitionTransform.bucket(buckets, value);
    }
  }

  public static final class BucketDecimal extends BoundFunction implements ReducibleBucket {
    BucketDecimal(String name, DataType source) {
      super(name, Kind.BUCKET, source);
    }

    public static Integer invoke(int buckets, Decimal value) {
      return value == null ? null : PartitionTransform.bucket(buckets, value);
    }
  }

  public static final class BucketBinary extends BoundFunction implements ReducibleBucket {
    BucketBinary(String name, DataType source) {
      super(name, Kind.BUCKET, source);
    }

    public static Integer invoke(int buckets, byte[] value) {
      return value == null ? null : PartitionTransform.bucket(buckets, value);
    }
  }

  public static final class TruncateByte extends BoundFunction {
    TruncateByte(String name, DataType source) {
      super(name, Kind.TRUNCATE, source);
    }

    public static byte invoke(int width, byte value) {
      return (byte) PartitionTransform.truncate(width, value);
    }
  }

  public static final class TruncateShort extends BoundFunction {
    TruncateShort(String name, DataType source) {
      super(name, Kind.TRUNCATE, source);
    }

    public static short invoke(int width, short value) {
      return (short) PartitionTransform.truncate(width, value);
    }
  }

  public static final class TruncateInt extends BoundFunction {
    TruncateInt(String name, DataType source) {
      super(name, Kind.TRUNCATE, source);
    }

    public static int invoke(int width, int value) {
      return PartitionTransform.truncate(width, value);
    }
  }

  public static final class TruncateLong extends BoundFunction {
    TruncateLong(String name, DataType source) {
      super(name, Kind.TRUNCATE, source);
    }

    public static long invoke(int width, long value) {
      return PartitionTransform.truncate(width, value);
    }
  }

  public static final class TruncateString extends BoundFunction {
    TruncateString(String name, DataType source) {
      super(name, Kind.TRUNCATE, source);
    }

    public static UTF8String invoke(int width, UTF8String value) {
      return value == null ? null : PartitionTransform.truncate(width, value);
    }
  }

  public static final class TruncateDecimal extends BoundFunction {
    TruncateDecimal(String name, DataType source) {
      super(name, Kind.TRUNCATE, source);
    }

    public static Decimal invoke(int width, Decimal value) {
      return value == null ? null : PartitionTransform.truncate(width, value);
    }
  }

  public static final class TruncateBinary extends BoundFunction {
    TruncateBinary(String name, DataType source) {
      super(name, Kind.TRUNCATE, source);
    }

    public static byte[] invoke(int width, byte[] value) {
      return value == null ? null : PartitionTransform.truncate(width, value);
    }
  }
}
