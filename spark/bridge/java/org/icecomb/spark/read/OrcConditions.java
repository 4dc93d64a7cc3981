package org.icecomb.spark.read;

import java.math.BigDecimal;
import java.sql.Date;
import java.sql.Timestamp;
import java.time.LocalDate;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument.TruthValue;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.apache.hadoop.hive.serde2.io.HiveDecimalWritable;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.icecomb.spark.convert.Condition;

/**
 * Conversion of conditions to ORC's search arguments, which leave out stripes and row groups by
 * statistics.
 *
 * <p>Only types that ORC compares like Spark are used: integers, decimals, text that both order
 * alike, dates and timestamps, except for values that {@link #literal} excludes. Other conditions
 * are dropped.
 */
final class OrcConditions {

  private static final char FIRST_SURROGATE = '\uD800';
  private static final long FIRST_GREGORIAN_DAY = LocalDate.of(1582, 10, 15).toEpochDay();
  private static final long SECOND = 1_000_000;

  private final SearchArgument.Builder builder = SearchArgumentFactory.newBuilder();

  private OrcConditions() {}

  /**
   * @param columns the columns that may be compared
   * @return null if no condition can be converted
   */
  static SearchArgument of(List<Condition> conditions, Condition.FileColumns columns) {
    List<Filter> filters =
        conditions.stream()
            .map(condition -> condition.onFile(columns, true))
            .filter(Objects::nonNull)
            .toList();
    if (filters.isEmpty()) {
      return null;
    }
    OrcConditions asked = new OrcConditions();
    asked.builder.startAnd();
    filters.forEach(asked::add);
    return asked.builder.end().build();
  }

  private void add(Filter filter) {
    if (filter instanceof And and) {
      builder.startAnd();
      add(and.left());
      add(and.right());
      builder.end();
    } else if (filter instanceof Or or) {
      builder.startOr();
      add(or.left());
      add(or.right());
      builder.end();
    } else if (filter instanceof Not not) {
      builder.startNot();
      add(not.child());
      builder.end();
    } else {
      addLeaf(filter);
    }
  }

  private void addLeaf(Filter leaf) {
    if (leaf instanceof IsNull is) {
      builder.isNull(is.attribute(), PredicateLeaf.Type.LONG);
    } else if (leaf instanceof IsNotNull is) {
      builder.startNot().isNull(is.attribute(), PredicateLeaf.Type.LONG).end();
    } else if (leaf instanceof EqualTo is && type(is.value()) != null) {
      builder.equals(is.attribute(), type(is.value()), is.value());
    } else if (leaf instanceof EqualNullSafe is && type(is.value()) != null) {
      builder.nullSafeEquals(is.attribute(), type(is.value()), is.value());
    } else if (leaf instanceof LessThan is && type(is.value()) != null) {
      builder.lessThan(is.attribute(), type(is.value()), is.value());
    } else if (leaf instanceof LessThanOrEqual is && type(is.value()) != null) {
      builder.lessThanEquals(is.attribute(), type(is.value()), is.value());
    } else if (leaf instanceof GreaterThan is && type(is.value()) != null) {
      builder.startNot().lessThanEquals(is.attribute(), type(is.value()), is.value()).end();
    } else if (leaf instanceof GreaterThanOrEqual is && type(is.value()) != null) {
      builder.startNot().lessThan(is.attribute(), type(is.value()), is.value()).end();
    } else if (leaf instanceof In in && type(in.values()) != null) {
      builder.in(in.attribute(), type(in.values()), in.values());
    } else {
      builder.literal(TruthValue.YES_NO_NULL);
    }
  }

  private static PredicateLeaf.Type type(Object[] values) {
    PredicateLeaf.Type type = values.length == 0 ? null : type(values[0]);
    return Arrays.stream(values).allMatch(value -> type(value) == type) ? type : null;
  }

  /** The type in which ORC compares a literal, or null if it compares differently than Spark. */
  private static PredicateLeaf.Type type(Object value) {
    if (value instanceof Long) {
      return PredicateLeaf.Type.LONG;
    }
    if (value instanceof Date) {
      return PredicateLeaf.Type.DATE;
    }
    if (value instanceof Timestamp) {
      return PredicateLeaf.Type.TIMESTAMP;
    }
    if (value instanceof HiveDecimalWritable) {
      return PredicateLeaf.Type.DECIMAL;
    }
    // ORC compares UTF-16, Spark bytes of UTF-8: beyond this character they differ.
    return value instanceof String text && text.chars().allMatch(c -> c < FIRST_SURROGATE)
        ? PredicateLeaf.Type.STRING
        : null;
  }

  /**
   * Converts a value exactly to the form that ORC compares.
   *
   * @param value a non-null value in Spark's internal form
   * @return null if statistics may contradict rows
   */
  static Object literal(Object value, DataType type) {
    if (type instanceof DateType) {
      return day((Integer) value);
    }
    if (type instanceof TimestampType || type instanceof TimestampNTZType) {
      return moment((Long) value);
    }
    if (type instanceof DecimalType) {
      BigDecimal number = ((Decimal) value).toJavaBigDecimal();
      HiveDecimal exact = HiveDecimal.create(number, false);
      return exact == null || exact.bigDecimalValue().compareTo(number) != 0
          ? null
          : new HiveDecimalWritable(exact);
    }
    Object found = CatalystTypeConverters.convertToScala(value, type);
    return found instanceof Integer number ? Long.valueOf(number) : found;
  }

  /**
   * If a file does not state its calendar, as those of Iceberg Java, ORC converts older dates in
   * its statistics from the Julian calendar, but never past the first Gregorian day; icecomb reads
   * values as stored.
   */
  private static Date day(int days) {
    if (days < FIRST_GREGORIAN_DAY) {
      return null;
    }
    LocalDate day = LocalDate.ofEpochDay(days);
    Date literal = Date.valueOf(day);
    // A zone that crossed the date line lacks a day, which becomes the next one.
    return literal.toLocalDate().equals(day) ? literal : null;
  }

  /**
   * Timestamps are converted between calendars like dates. Besides, ORC stores times less than a
   * second before 1970 so that they are read a second later, while statistics have the right time.
   */
  private static Timestamp moment(long micros) {
    if (Math.floorDiv(micros, SECOND) < FIRST_GREGORIAN_DAY * 24 * 60 * 60
        || -SECOND < micros && micros < SECOND) {
      return null;
    }
    Timestamp literal = new Timestamp(Math.floorDiv(micros, 1000));
    literal.setNanos((int) Math.floorMod(micros, SECOND) * 1000);
    return literal;
  }
}
