package org.icecomb.spark.write;

import org.apache.parquet.hadoop.ParquetWriter;

/** Settings of Parquet's writer that are missing in some Sparks' Parquet. */
final class ParquetLimits {

  private ParquetLimits() {}

  static void maxBloomFilterBytes(ParquetWriter.Builder<?, ?> writer, int bytes) {
    writer.withMaxBloomFilterBytes(bytes);
  }

  static void adaptiveBloomFilters(ParquetWriter.Builder<?, ?> writer, boolean enabled) {
    writer.withAdaptiveBloomFilterEnabled(enabled);
  }

  static void statistics(ParquetWriter.Builder<?, ?> writer, String column, boolean enabled) {
    writer.withStatisticsEnabled(column, enabled);
  }
}
