package org.icecomb.spark;

import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomSumMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/**
 * A metric of a scan or a write in Spark's UI, with Iceberg's name and description.
 *
 * <p>Spark creates one without a name to add up the values of tasks.
 */
public final class NamedMetric extends CustomSumMetric {

  private final String name;
  private final String description;

  public NamedMetric() {
    this("", "");
  }

  private NamedMetric(String name, String description) {
    this.name = name;
    this.description = description;
  }

  /**
   * @param all the name and description of each metric
   */
  public static CustomMetric[] all(String[][] all) {
    return Arrays.stream(all).map(each -> new NamedMetric(each[0], each[1])).toArray(CustomMetric[]::new);
  }

  /** The values of metrics by name. */
  public static CustomTaskMetric[] values(Map<String, Long> values) {
    return values.entrySet().stream()
        .map(each -> new Value(each.getKey(), each.getValue()))
        .toArray(CustomTaskMetric[]::new);
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
