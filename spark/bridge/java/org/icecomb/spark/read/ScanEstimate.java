package org.icecomb.spark.read;

import java.util.HashMap;
import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
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
   * @param columns the columns that are read, with their field ids
   */
  static ScanEstimate of(ScanStatistics statistics, StructType columns) {
    Map<NamedReference, ColumnStatistics> known = new HashMap<>();
    for (StructField column : columns.fields()) {
      Long number = statistics.distinctValues().get(String.valueOf(Schemas.id(column)));
      if (number != null) {
        known.put(
            Transforms.column(column.name()), new DistinctValues(OptionalLong.of(number)));
      }
    }
    return new ScanEstimate(
        OptionalLong.of(statistics.bytes()), OptionalLong.of(statistics.rows()), known);
  }

  private record DistinctValues(OptionalLong distinctCount) implements ColumnStatistics {}
}
