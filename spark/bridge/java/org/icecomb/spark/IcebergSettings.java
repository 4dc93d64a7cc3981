package org.icecomb.spark;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.icecomb.spark.planner.Protocol.Audit;
import scala.collection.JavaConverters;

/** The session's Iceberg settings, which the planner interprets. */
public final class IcebergSettings {

  private static final String PREFIX = "spark.sql.iceberg.";

  /** Spark's settings by which statements may leave out fields of structs. */
  private static final List<String> NESTED_COERCION =
      List.of(
          "spark.sql.mergeNestedTypeCoercion.enabled",
          "spark.sql.insertNestedTypeCoercion.enabled");

  private IcebergSettings() {}

  /** The current settings of the session that runs the statement. */
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

  /** The current settings for write-audit-publish; the planner interprets them for each table. */
  public static Audit audit() {
    SQLConf conf = SparkSession.active().sessionState().conf();
    return new Audit(
        conf.getConfString("spark.wap.id", null), conf.getConfString("spark.wap.branch", null));
  }

  /**
   * The same as {@link #now}, plus Spark's settings that determine the ratio of shuffle bytes to file bytes, and
   * whether statements give all fields.
   */
  public static Map<String, String> ofWrites() {
    Map<String, String> found = now();
    SparkSession spark = SparkSession.active();
    Object advisory =
        spark.sessionState().conf().getConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES());
    found.put(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES().key(), advisory.toString());
    for (String key : List.of("spark.shuffle.compress", "spark.io.compression.codec")) {
      if (spark.sparkContext().conf().contains(key)) {
        found.put(key, spark.sparkContext().conf().get(key));
      }
    }
    for (String key : NESTED_COERCION) {
      found.put(key, spark.sessionState().conf().getConfString(key, "false"));
    }
    return found;
  }
}
