package org.icecomb.spark;

import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SparkSession;
import scala.collection.JavaConverters;

/** The session's settings that belong to Iceberg; what they mean the planner says. */
public final class IcebergSettings {

  private static final String PREFIX = "spark.sql.iceberg.";

  private IcebergSettings() {}

  /** The settings of the session that runs the statement, as they are now. */
  public static Map<String, String> now() {
    Map<String, String> all =
        JavaConverters.mapAsJavaMap(SparkSession.active().sessionState().conf().getAllConfs());
    Map<String, String> found = new TreeMap<>();
    all.forEach(
        (key, value) -> {
          if (key.startsWith(PREFIX)) {
            found.put(key, value);
          }
        });
    return found;
  }
}
