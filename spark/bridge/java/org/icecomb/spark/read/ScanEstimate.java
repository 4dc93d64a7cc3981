package org.icecomb.spark.read;

import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.convert.Values;
import org.icecomb.spark.planner.Protocol.ColumnEstimate;
import org.icecomb.spark.planner.Protocol.ScanStatistics;

/** The planner's estimates of a scan, for Spark's optimizer. */
record ScanEstimate(
    OptionalLong sizeInBytes,
    OptionalLong numRows,
    Map<NamedReference, ColumnStatistics> columnStats)
    implements Statistics {

  /** The estimate of a stream, which has no end. */
  static final ScanEstimate UNKNOWN =
      new ScanEstimate(OptionalLong.empty(), OptionalLong.empty(), Map.of());

  /**
   * Spark takes a column with a number of nulls but no limits for one without values, whose joins
   * and filters give no row: it gets that number only where it gets what belongs to it.
   *
   * @param columns the columns that are read, with their field ids
   */
  static ScanEstimate of(ScanStatistics statistics, StructType columns) {
    Map<NamedReference, ColumnStatistics> known = new HashMap<>();
    for (StructField column : columns.fields()) {
      ColumnEstimate estimate = statistics.columns().get(String.valueOf(Schemas.id(column)));
      if (estimate != null) {
        known.put(
            Transforms.column(column.name()), ColumnValues.of(estimate, column.dataType()));
      }
    }
    return new ScanEstimate(
        OptionalLong.of(statistics.bytes()), OptionalLong.of(statistics.rows()), known);
  }

  private record ColumnValues(
      OptionalLong distinctCount, OptionalLong nullCount, Optional<Object> min, Optional<Object> max)
      implements ColumnStatistics {

    static ColumnValues of(ColumnEstimate estimate, DataType type) {
      OptionalLong nulls =
          estimate.nulls() == null ? OptionalLong.empty() : OptionalLong.of(estimate.nulls());
      if (type instanceof StringType || type instanceof BinaryType) {
        // without limits Spark divides by their number
        OptionalLong some = OptionalLong.of(Math.max(1, estimate.distinct()));
        return new ColumnValues(some, nulls, Optional.empty(), Optional.empty());
      }
      OptionalLong distinct = OptionalLong.of(estimate.distinct());
      boolean hasLimits =
          type instanceof NumericType
              || type instanceof DateType
              || type instanceof TimestampType
              || type instanceof BooleanType;
      Object min = hasLimits ? Values.fromJson(estimate.min(), type) : null;
      Object max = hasLimits ? Values.fromJson(estimate.max(), type) : null;
      boolean isWhole = min != null && max != null || hasLimits && estimate.distinct() == 0;
      return new ColumnValues(
          distinct,
          isWhole ? nulls : OptionalLong.empty(),
          isWhole ? Optional.ofNullable(min) : Optional.empty(),
          isWhole ? Optional.ofNullable(max) : Optional.empty());
    }
  }
}
