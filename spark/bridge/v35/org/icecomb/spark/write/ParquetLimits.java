package org.icecomb.spark.write;

import java.lang.reflect.Field;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.hadoop.ParquetWriter;

/** Settings of Parquet's writer that are missing in some Sparks' Parquet. */
final class ParquetLimits {

  private ParquetLimits() {}

  /** Set by reflection: this Parquet has it, but not among the settings of a file writer. */
  static void maxBloomFilterBytes(ParquetWriter.Builder<?, ?> writer, int bytes) {
    try {
      Field field = ParquetWriter.Builder.class.getDeclaredField("encodingPropsBuilder");
      field.setAccessible(true);
      ((ParquetProperties.Builder) field.get(writer)).withMaxBloomFilterBytes(bytes);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("The size of bloom filters cannot be set in this Parquet", e);
    }
  }

  /** Ignored: this Parquet supports only bloom filters of one size. */
  static void adaptiveBloomFilters(ParquetWriter.Builder<?, ?> writer, boolean enabled) {}

  /** Ignored: this Parquet writes statistics of every column. */
  static void statistics(ParquetWriter.Builder<?, ?> writer, String column, boolean enabled) {}
}
