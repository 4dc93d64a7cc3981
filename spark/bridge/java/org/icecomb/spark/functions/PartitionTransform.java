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
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.hash.Murmur3_x86_32;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A partition transform of the Iceberg specification on values of Spark's internal form.
 *
 * <p>The writers apply it to every row, so it is the one piece of the format that lives here. Null
 * becomes null under every transform.
 */
public final class PartitionTransform implements Serializable {

  private static final long MICROS_PER_SECOND = 1_000_000L;
  private static final long MICROS_PER_HOUR = 3_600L * MICROS_PER_SECOND;
  private static final long MICROS_PER_DAY = 24L * MICROS_PER_HOUR;

  /** The transforms by the names that table metadata has. */
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
   * @throws UnsupportedOperationException when values of the source type cannot be transformed so
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
    boolean text = source instanceof StringType || source instanceof BinaryType;
    return switch (kind) {
      case IDENTITY, VOID -> true;
      case YEAR, MONTH, DAY -> timestamp || source instanceof DateType;
      case HOUR -> timestamp;
      case BUCKET -> parameter > 0 && (number || text || timestamp || source instanceof DateType);
      case TRUNCATE -> parameter > 0 && (number || text);
    };
  }

  int parameter() {
    return parameter;
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
      case YEAR -> LocalDate.ofEpochDay(day(value)).getYear() - 1970;
      case MONTH -> month(LocalDate.ofEpochDay(day(value)));
      case DAY -> day(value);
      case HOUR -> (int) Math.floorDiv((Long) value, MICROS_PER_HOUR);
      case BUCKET -> (hash(value) & Integer.MAX_VALUE) % parameter;
      case TRUNCATE -> truncate(value);
      case VOID -> null;
    };
  }

  private static int month(LocalDate date) {
    return (date.getYear() - 1970) * 12 + date.getMonthValue() - 1;
  }

  private static int day(Object value) {
    return value instanceof Integer days ? days : (int) Math.floorDiv((Long) value, MICROS_PER_DAY);
  }

  /** Appendix B of the specification: integers of every width hash as 8 bytes. */
  private static int hash(Object value) {
    if (value instanceof Integer || value instanceof Long) {
      return Murmur3_x86_32.hashLong(((Number) value).longValue(), 0);
    }
    byte[] bytes;
    if (value instanceof UTF8String text) {
      bytes = text.getBytes();
    } else if (value instanceof Decimal decimal) {
      bytes = decimal.toJavaBigDecimal().unscaledValue().toByteArray();
    } else {
      bytes = (byte[]) value;
    }
    return Murmur3_x86_32.hashUnsafeBytes2(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, 0);
  }

  private Object truncate(Object value) {
    if (value instanceof Integer number) {
      return number - Math.floorMod(number, parameter);
    }
    if (value instanceof Long number) {
      return number - Math.floorMod(number, (long) parameter);
    }
    if (value instanceof UTF8String text) {
      return text.substring(0, parameter);
    }
    if (value instanceof byte[] bytes) {
      return bytes.length <= parameter ? bytes : Arrays.copyOf(bytes, parameter);
    }
    Decimal decimal = (Decimal) value;
    BigInteger unscaled = decimal.toJavaBigDecimal().unscaledValue();
    BigInteger kept = unscaled.subtract(unscaled.mod(BigInteger.valueOf(parameter)));
    // Rounding towards minus infinity may need one digit more than the column has.
    return Decimal.apply(new java.math.BigDecimal(kept, decimal.scale()));
  }

  /** A partition value as it stands in the paths of data files, before escaping. */
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
