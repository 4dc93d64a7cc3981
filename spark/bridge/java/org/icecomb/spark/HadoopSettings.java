package org.icecomb.spark;

import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.fs.FileSystem;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.Utils;

/**
 * Spark's Hadoop configuration for a catalog: all of it for tasks, and explicitly set keys of file
 * systems and metastores for the planner.
 *
 * <p>Iceberg's {@code spark.sql.catalog.<name>.hadoop.<key>} and options with prefixes of file
 * system keys take precedence. Values may be secrets and must not be printed.
 */
final class HadoopSettings {

  static final String METASTORE = "hive.metastore.uris";

  private static final String TEMPORARY = "hadoop.tmp.dir";

  private static final String OVERRIDE = "hadoop.";
  private static final String[] FILE_SYSTEMS = {"fs.", "dfs.", "ipc."};
  private static final String[] PLANNERS = {
    "fs.", "dfs.", "ipc.", "hadoop.", "hive.metastore.", "metastore.", "iceberg.", "engine.hive."
  };

  private HadoopSettings() {}

  /** The configuration of the session, overridden by the catalog's options. */
  static Configuration of(SparkSession spark, Map<String, String> options) {
    keepPrivate(spark.sparkContext());
    Configuration conf = spark.sessionState().newHadoopConf();
    // HiveConf takes system properties, and Iceberg finds the metastore by it
    String metastore = System.getProperty(METASTORE);
    if (metastore != null && conf.get(METASTORE, "").isEmpty()) {
      conf.set(METASTORE, metastore);
    }
    options.forEach(
        (key, value) -> {
          if (key.startsWith(OVERRIDE) && key.length() > OVERRIDE.length()) {
            conf.set(key.substring(OVERRIDE.length()), value);
          }
        });
    options.forEach(
        (key, value) -> {
          if (startsWith(key, FILE_SYSTEMS)) {
            conf.set(key, value);
          }
        });
    return conf;
  }

  /**
   * Has a driver without a cluster keep files on their way to a store where only this user can
   * reach them: another one can make Hadoop's own folder, /tmp/hadoop-(user), before.
   */
  private static void keepPrivate(SparkContext context) {
    Configuration all = context.hadoopConfiguration();
    if (context.isLocal() && isDefault(all.getPropertySources(TEMPORARY))) {
      all.set(TEMPORARY, Utils.getLocalDir(context.conf()));
    }
  }

  /**
   * The settings for the planner's file systems and metastore clients; of Hadoop's own defaults
   * only the default file system, in which tasks open locations without a scheme.
   */
  static Map<String, String> stated(Configuration conf) {
    Map<String, String> found = new TreeMap<>();
    for (Map.Entry<String, String> entry : conf) {
      String key = entry.getKey();
      if (startsWith(key, PLANNERS) && !isDefault(conf.getPropertySources(key))) {
        String value = conf.get(key);
        if (value != null) {
          found.put(key, value);
        }
      }
    }
    found.put(
        CommonConfigurationKeysPublic.FS_DEFAULT_NAME_KEY,
        FileSystem.getDefaultUri(conf).toString());
    return found;
  }

  /** Whether the last source of a key, which counts, is one of Hadoop's files of defaults. */
  private static boolean isDefault(String[] sources) {
    return sources != null
        && sources.length > 0
        && sources[sources.length - 1].endsWith("-default.xml");
  }

  private static boolean startsWith(String key, String[] prefixes) {
    for (String prefix : prefixes) {
      if (key.startsWith(prefix)) {
        return true;
      }
    }
    return false;
  }
}
