package org.icecomb.spark.write;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.icecomb.spark.NamedMetric;

/** The metrics of a commit in Spark's UI. */
final class CommitMetrics {

  private static final String[][] ALL = {
    {"addedDataFiles", "number of added data files"},
    {"addedDeleteFiles", "number of added delete files"},
    {"addedEqualityDeletes", "number of added equality deletes records"},
    {"addedEqualityDeleteFiles", "number of added equality delete files"},
    {"addedFileSizeInBytes", "total size of added files (bytes)"},
    {"addedPositionalDeletes", "number of added positional deletes records"},
    {"addedPositionalDeleteFiles", "number of added positional delete files"},
    {"addedRecords", "number of added records"},
    {"removedDataFiles", "number of removed data files"},
    {"removedDeleteFiles", "number of removed delete files"},
    {"removedEqualityDeletes", "number of removed equality deletes records"},
    {"removedEqualityDeleteFiles", "number of removed equality delete files"},
    {"removedFileSizeInBytes", "total size of removed files (bytes)"},
    {"removedPositionalDeletes", "number of removed positional deletes records"},
    {"removedPositionalDeleteFiles", "number of removed positional delete files"},
    {"removedRecords", "number of removed records"},
    {"totalDataFiles", "total number of data files"},
    {"totalDeleteFiles", "total number of delete files"},
    {"totalEqualityDeletes", "total number of equality deletes records"},
    {"totalFileSizeInBytes", "total data file size (bytes)"},
    {"totalPositionalDeletes", "total number of positional deletes records"},
    {"totalRecords", "total number of records"},
  };

  private CommitMetrics() {}

  /** The metrics of every commit. */
  static CustomMetric[] all() {
    return NamedMetric.all(ALL);
  }
}
