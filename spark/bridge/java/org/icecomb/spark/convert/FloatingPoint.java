package org.icecomb.spark.convert;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.icecomb.spark.convert.Condition.FileColumns;

/**
 * Comparisons of floating-point numbers on files, which order them differently than SQL.
 *
 * <p>In SQL both zeros are equal, and NaN is one value, greater than all others. File readers order
 * -0.0 before 0.0, and would leave out the rows of the other zero; the bounds of most writers do
 * not cover NaN, so that they cannot decide a comparison that NaN satisfies.
 */
final class FloatingPoint {

  private FloatingPoint() {}

  static boolean is(DataType type) {
    return type.equals(DataTypes.FloatType) || type.equals(DataTypes.DoubleType);
  }

  /** The comparison, or null if the file must not be filtered by it. */
  static Filter compared(
      String operator, String column, Object value, FileColumns columns, boolean weaker) {
    boolean ofNaN = operator.equals("not_eq") || operator.equals("gt") || operator.equals("gt_eq");
    if (isNaN(value) || (!columns.boundsKnowNaN() && (!weaker || ofNaN))) {
      return null;
    }
    Object least = isZero(value) ? zero(value, -0.0) : value;
    Object greatest = isZero(value) ? zero(value, 0.0) : value;
    return switch (operator) {
      case "eq" -> equal(column, value);
      case "not_eq" -> new Not(equal(column, value));
      case "eq_null_safe" -> new And(new IsNotNull(column), equal(column, value));
      case "lt" -> new LessThan(column, least);
      case "lt_eq" -> new LessThanOrEqual(column, greatest);
      case "gt" -> new GreaterThan(column, greatest);
      case "gt_eq" -> new GreaterThanOrEqual(column, least);
      default -> throw new IllegalStateException(operator);
    };
  }

  /** The filter for one of several values, or null if the file must not be filtered by it. */
  static Filter in(String column, List<Object> values, FileColumns columns, boolean weaker) {
    if (!columns.boundsKnowNaN() && !weaker || values.stream().anyMatch(FloatingPoint::isNaN)) {
      return null;
    }
    List<Object> others = new ArrayList<>();
    Filter zeros = null;
    for (Object value : values) {
      if (isZero(value)) {
        zeros = equal(column, value);
      } else {
        others.add(value);
      }
    }
    Filter found = new In(column, others.toArray());
    if (zeros == null) {
      return found;
    }
    return others.isEmpty() ? zeros : new Or(found, zeros);
  }

  private static Filter equal(String column, Object value) {
    return isZero(value)
        ? new And(
            new GreaterThanOrEqual(column, zero(value, -0.0)),
            new LessThanOrEqual(column, zero(value, 0.0)))
        : new EqualTo(column, value);
  }

  private static boolean isNaN(Object value) {
    return Double.isNaN(((Number) value).doubleValue());
  }

  private static boolean isZero(Object value) {
    return ((Number) value).doubleValue() == 0.0;
  }

  private static Object zero(Object like, double zero) {
    return like instanceof Float ? (Object) (float) zero : (Object) zero;
  }
}
