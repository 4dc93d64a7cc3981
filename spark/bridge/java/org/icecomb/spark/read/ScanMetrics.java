package org.icecomb.spark.read;

import java.util.Map;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.icecomb.spark.NamedMetric;

/** The metrics of a scan in Spark's UI. */
final class ScanMetrics {

  private static final String SPLITS = "numSplits";
  private static final String DELETES = "numDeletes";

  private static final String[][] ALL = {
    {SPLITS, "number of file splits read"},
    {DELETES, "number of row deletes applied"},
    {"totalPlanningDuration", "total planning duration (ms)"},
    {"totalDataManifest", "total data manifests"},
    {"scannedDataManifests", "number of scanned data manifests"},
    {"skippedDataManifests", "number of skipped data manifests"},
    {"resultDataFiles", "number of result data files"},
    {"skippedDataFiles", "number of skipped data files"},
    {"totalDataFileSize", "total data file size (bytes)"},
    {"totalDeleteManifests", "total delete manifests"},
    {"scannedDeleteManifests", "number of scanned delete manifests"},
    {"skippedDeleteManifests", "number of skipped delete manifest"},
    {"totalDeleteFileSize", "total delete file size (bytes)"},
    {"resultDeleteFiles", "number of result delete files"},
    {"equalityDeleteFiles", "number of equality delete files"},
    {"indexedDeleteFiles", "number of indexed delete files"},
    {"positionalDeleteFiles", "number of positional delete files"},
    {"skippedDeleteFiles", "number of skipped delete files"},
  };

  private ScanMetrics() {}

  /** The metrics of every scan. */
  static CustomMetric[] all() {
    return NamedMetric.all(ALL);
  }

  /** The metrics of a task. */
  static CustomTaskMetric[] of(long splits, long deletes) {
    return NamedMetric.values(Map.of(SPLITS, splits, DELETES, deletes));
  }
}
