package org.icecomb.spark.functions;

import java.io.Serializable;
import java.math.BigInteger;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.Base64;
import java.util.Locale;
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
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A partition transform of the Iceberg specification on values of Spark's internal form.
 *
 * <p>The writers apply it to every row, so it is the one piece of the format that is implemented
 * here. Null becomes null under every transform.
 */
public final class PartitionTransform implements Serializable {

  private static final long MICROS_PER_SECOND = 1_000_000L;
  private static final long MICROS_PER_HOUR = 3_600L * MICROS_PER_SECOND;
  private static final long MICROS_PER_DAY = 24L * MICROS_PER_HOUR;

  /** The transforms under their names in table metadata. */
  public enum Kind {
    IDENTITY,
    YEAR,
    MONTH,
    DAY,
    HOUR,
    BUCKET,
    TRUNCATE,
    VOID
  }

  private final Kind kind;
  private final int parameter;
  private final DataType source;

  /**
   * @param parameter number of buckets or width of truncation; ignored by other transforms
   * @throws UnsupportedOperationException if the source type does not have this transform
   */
  public PartitionTransform(Kind kind, int parameter, DataType source) {
    this.kind = kind;
    this.parameter = parameter;
    this.source = source;
    if (!isApplicable()) {
      throw new UnsupportedOperationException(
          "Cannot apply "
              + kind.name().toLowerCase(Locale.ROOT)
              + " to a value of type "
              + source.catalogString());
    }
  }

  private boolean isApplicable() {
    boolean timestamp = source instanceof TimestampType || source instanceof TimestampNTZType;
    boolean number =
        source instanceof IntegerType
            || source instanceof LongType
            || source instanceof DecimalType;
    boolean small = source instanceof ByteType || source instanceof ShortType;
    boolean text = source instanceof StringType || source instanceof BinaryType;
    return switch (kind) {
      case IDENTITY, VOID -> true;
      case YEAR, MONTH, DAY -> timestamp || source instanceof DateType;
      case HOUR -> timestamp;
      case BUCKET -> parameter > 0 && (number || text || timestamp || source instanceof DateType);
      case TRUNCATE -> parameter > 0 && (number || small || text);
    };
  }

  int parameter() {
    return parameter;
  }

  /** The transform's name in table metadata. */
  @Override
  public String toString() {
    String name = kind.name().toLowerCase(Locale.ROOT);
    return kind == Kind.BUCKET || kind == Kind.TRUNCATE ? name + "[" + parameter + "]" : name;
  }

  public DataType resultType() {
    return switch (kind) {
      case IDENTITY, TRUNCATE, VOID -> source;
      case DAY -> DataTypes.DateType;
      case YEAR, MONTH, HOUR, BUCKET -> DataTypes.IntegerType;
    };
  }

  /** The partition value of a column's value. */
  public Object apply(Object value) {
    if (value == null) {
      return null;
    }
    return switch (kind) {
      case IDENTITY -> value;
      case YEAR -> year(dayOf(value));
      case MONTH -> month(dayOf(value));
      case DAY -> dayOf(value);
      case HOUR -> hour((Long) value);
      case BUCKET -> bucketOf(value);
      case TRUNCATE -> truncated(value);
      case VOID -> null;
    };
  }

  private static int dayOf(Object value) {
    return value instanceof Integer days ? days : day((Long) value);
  }

  private int bucketOf(Object value) {
    if (value instanceof Integer || value instanceof Long) {
      return bucket(parameter, ((Number) value).longValue());
    }
    if (value instanceof UTF8String text) {
      return bucket(parameter, text);
    }
    return value instanceof Decimal decimal
        ? bucket(parameter, decimal)
        : bucket(parameter, (byte[]) value);
  }

  private Object truncated(Object value) {
    if (value instanceof Integer number) {
      return truncate(parameter, number);
    }
    if (value instanceof Long number) {
      return truncate(parameter, number);
    }
    if (value instanceof Short number) {
      return (short) truncate(parameter, number);
    }
    if (value instanceof Byte number) {
      return (byte) truncate(parameter, number);
    }
    if (value instanceof UTF8String text) {
      return truncate(parameter, text);
    }
    return value instanceof Decimal decimal
        ? truncate(parameter, decimal)
        : truncate(parameter, (byte[]) value);
  }

  static int year(int days) {
    return LocalDate.ofEpochDay(days).getYear() - 1970;
  }

  static int month(int days) {
    LocalDate date = LocalDate.ofEpochDay(days);
    return (date.getYear() - 1970) * 12 + date.getMonthValue() - 1;
  }

  static int day(long micros) {
    return (int) Math.floorDiv(micros, MICROS_PER_DAY);
  }

  static int hour(long micros) {
    long hours = Math.floorDiv(micros, MICROS_PER_HOUR);
    if (hours != (int) hours) {
      // modulo 2^32 it would be the hour of another time, in which no filter would find the row
      throw new ArithmeticException(
          "Timestamp "
              + LocalDateTime.ofEpochSecond(
                  Math.floorDiv(micros, MICROS_PER_SECOND), 0, ZoneOffset.UTC)
              + " is "
              + hours
              + " hours from 1970: a partition by hours is an int, and cannot have it; partition by"
              + " days, or write a nearer timestamp or null");
    }
    return (int) hours;
  }

  /** Appendix B of the specification: integers of every width hash as 8 bytes. */
  static int bucket(int buckets, long value) {
    return bucketOfHash(buckets, Murmur3_x86_32.hashLong(value, 0));
  }

  static int bucket(int buckets, UTF8String value) {
    return bucket(buckets, value.getBytes());
  }

  static int bucket(int buckets, Decimal value) {
    return bucket(buckets, value.toJavaBigDecimal().unscaledValue().toByteArray());
  }

  static int bucket(int buckets, byte[] value) {
    return bucketOfHash(
        buckets,
        Murmur3_x86_32.hashUnsafeBytes2(value, Platform.BYTE_ARRAY_OFFSET, value.length, 0));
  }

  private static int bucketOfHash(int buckets, int hash) {
    return (hash & Integer.MAX_VALUE) % positive(buckets, "bucket");
  }

  static int truncate(int width, int value) {
    return value - Math.floorMod(value, positive(width, "truncate"));
  }

  static long truncate(int width, long value) {
    return value - Math.floorMod(value, (long) positive(width, "truncate"));
  }

  static UTF8String truncate(int width, UTF8String value) {
    return value.substring(0, positive(width, "truncate"));
  }

  static byte[] truncate(int width, byte[] value) {
    return value.length <= positive(width, "truncate") ? value : Arrays.copyOf(value, width);
  }

  static Decimal truncate(int width, Decimal value) {
    BigInteger unscaled = value.toJavaBigDecimal().unscaledValue();
    BigInteger kept =
        unscaled.subtract(unscaled.mod(BigInteger.valueOf(positive(width, "truncate"))));
    // Rounding towards minus infinity may need one digit more than the column has.
    return Decimal.apply(new java.math.BigDecimal(kept, value.scale()));
  }

  private static int positive(int parameter, String transform) {
    if (parameter < 1) {
      throw new IllegalArgumentException(
          transform + " needs a number of at least 1, not " + parameter);
    }
    return parameter;
  }

  /** A partition value as in the paths of data files, before escaping. */
  public String toHumanString(Object value) {
    if (value == null) {
      return "null";
    }
    return switch (kind) {
      case YEAR -> String.format(Locale.ROOT, "%04d", 1970 + (Integer) value);
      case MONTH ->
          String.format(
              Locale.ROOT,
              "%04d-%02d",
              1970 + Math.floorDiv((Integer) value, 12),
              1 + Math.floorMod((Integer) value, 12));
      case DAY -> LocalDate.ofEpochDay((Integer) value).toString();
      case HOUR ->
          String.format(
              Locale.ROOT,
              "%s-%02d",
              LocalDate.ofEpochDay(Math.floorDiv((Integer) value, 24)),
              Math.floorMod((Integer) value, 24));
      default -> plainString(value);
    };
  }

  private String plainString(Object value) {
    if (kind == Kind.BUCKET) {
      return value.toString();
    }
    if (source instanceof DateType) {
      return LocalDate.ofEpochDay((Integer) value).toString();
    }
    if (source instanceof TimestampType || source instanceof TimestampNTZType) {
      long micros = (Long) value;
      Instant instant =
          Instant.ofEpochSecond(
              Math.floorDiv(micros, MICROS_PER_SECOND),
              Math.floorMod(micros, MICROS_PER_SECOND) * 1_000L);
      return source instanceof TimestampType
          ? OffsetDateTime.ofInstant(instant, ZoneOffset.UTC).toString()
          : LocalDateTime.ofInstant(instant, ZoneOffset.UTC).toString();
    }
    if (value instanceof byte[] bytes) {
      return Base64.getEncoder().encodeToString(bytes);
    }
    return value instanceof Decimal decimal
        ? decimal.toJavaBigDecimal().toPlainString()
        : value.toString();
  }
}
