package org.icecomb.spark.read;

import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/**
 * A number that Spark's UI shows of a scan, by the name and in the words of Iceberg's.
 *
 * <p>Spark makes one without a name to add up what tasks said.
 */
public final class ScanMetric extends CustomSumMetric {

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

  private final String name;
  private final String description;

  public ScanMetric() {
    this("", "");
  }

  private ScanMetric(String name, String description) {
    this.name = name;
    this.description = description;
  }

  /** Those of every scan. */
  static CustomMetric[] all() {
    return Arrays.stream(ALL).map(each -> new ScanMetric(each[0], each[1])).toArray(CustomMetric[]::new);
  }

  /** What planning says. */
  static CustomTaskMetric[] of(Map<String, Long> planning) {
    return planning.entrySet().stream()
        .map(each -> new Value(each.getKey(), each.getValue()))
        .toArray(CustomTaskMetric[]::new);
  }

  /** What a task says. */
  static CustomTaskMetric[] of(long splits, long deletes) {
    return new CustomTaskMetric[] {new Value(SPLITS, splits), new Value(DELETES, deletes)};
  }

  private record Value(String name, long value) implements CustomTaskMetric {}

  @Override
  public String name() {
    return name;
  }

  @Override
  public String description() {
    return description;
  }
}
