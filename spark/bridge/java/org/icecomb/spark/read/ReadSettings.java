package org.icecomb.spark.read;

import java.io.Serializable;
import java.util.NoSuchElementException;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.internal.SQLConf;

/** The session's settings for reading files, collected on the driver for the executors. */
record ReadSettings(
    int batchRows,
    boolean offHeap,
    boolean pushDown,
    boolean pushDownDate,
    boolean pushDownTimestamp,
    boolean pushDownDecimal,
    boolean pushDownString,
    boolean pushDownOrc,
    int inThreshold,
    boolean convertInt96,
    String timeZone,
    String datetimeRebase,
    String int96Rebase,
    ExecutorCache.Settings cache)
    implements Serializable {

  /** Keys that Spark's schema conversion expects in the Hadoop configuration of a reader. */
  private static final String[] CONVERTER_KEYS = {
    "spark.sql.session.timeZone",
    "spark.sql.optimizer.nestedSchemaPruning.enabled",
    "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.int96AsTimestamp",
    "spark.sql.parquet.inferTimestampNTZ.enabled",
    "spark.sql.legacy.parquet.nanosAsLong",
    "spark.sql.timestampNanosTypes.enabled",
    "spark.sql.parquet.respectUnknownTypeAnnotation.enabled"
  };

  /**
   * @param batchRows the number of rows of a batch, if set by the query or its table; else null
   */
  static ReadSettings of(SQLConf conf, Configuration hadoop, Integer batchRows) {
    return new ReadSettings(
        batchRows == null ? conf.parquetVectorizedReaderBatchSize() : batchRows,
        conf.offHeapColumnVectorEnabled(),
        conf.parquetFilterPushDown(),
        conf.parquetFilterPushDownDate(),
        conf.parquetFilterPushDownTimestamp(),
        conf.parquetFilterPushDownDecimal(),
        conf.parquetFilterPushDownStringPredicate(),
        conf.orcFilterPushDown(),
        conf.parquetFilterPushDownInFilterThreshold(),
        conf.isParquetINT96TimestampConversion(),
        conf.sessionLocalTimeZone(),
        conf.getConfString("spark.sql.parquet.datetimeRebaseModeInRead"),
        conf.getConfString("spark.sql.parquet.int96RebaseModeInRead"),
        ExecutorCache.Settings.of(conf, hadoop));
  }

  /** Prepares the Hadoop configuration for all readers of a scan. */
  static void configure(Configuration hadoop, SQLConf conf) {
    for (String key : CONVERTER_KEYS) {
      try {
        hadoop.set(key, conf.getConfString(key));
      } catch (NoSuchElementException e) {
        // This version of Spark has no such setting.
      }
    }
    // Columns are found by field id and then requested by their exact names in the file.
    hadoop.setBoolean("spark.sql.caseSensitive", true);
    hadoop.setBoolean("spark.sql.parquet.fieldId.read.enabled", false);
    hadoop.set("parquet.read.support.class", ParquetReadSupport.class.getName());
  }
}
