package org.icecomb.spark.write;

import java.lang.reflect.Field;
import org.apache.parquet.column.ParquetProperties;
import org.apache.parquet.hadoop.ParquetWriter;

/** Settings of Parquet's writer that the Parquet of some Sparks does not have. */
final class ParquetLimits {

  private ParquetLimits() {}

  /** This Parquet has it, but not among the settings of a writer of files. */
  static void maxBloomFilterBytes(ParquetWriter.Builder<?, ?> writer, int bytes) {
    try {
      Field field = ParquetWriter.Builder.class.getDeclaredField("encodingPropsBuilder");
      field.setAccessible(true);
      ((ParquetProperties.Builder) field.get(writer)).withMaxBloomFilterBytes(bytes);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This Parquet cannot be told how long bloom filters are", e);
    }
  }

  /** This Parquet makes bloom filters of one length only. */
  static void adaptiveBloomFilters(ParquetWriter.Builder<?, ?> writer, boolean enabled) {}

  /** This Parquet writes statistics of every column. */
  static void statistics(ParquetWriter.Builder<?, ?> writer, String column, boolean enabled) {}
}
