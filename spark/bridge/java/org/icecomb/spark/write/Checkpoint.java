package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.planner.Json;

/**
 * The checkpoint of a streaming query.
 *
 * @param root the folder, or null if each start of the query has a new one
 * @param begunMs the time at which this write began, in ms since 1970
 */
record Checkpoint(String root, long begunMs) {

  /** The checkpoint that Spark chooses (StreamingQueryManager). */
  static Checkpoint of(CaseInsensitiveStringMap options) {
    String root = options.get("checkpointLocation");
    if (root == null) {
      SQLConf conf = SparkSession.active().sessionState().conf();
      String all = conf.getConfString("spark.sql.streaming.checkpointLocation", null);
      String name = options.get("queryName");
      root = all == null || name == null ? null : new Path(all, name).toString();
    }
    return new Checkpoint(root, System.currentTimeMillis());
  }

  /**
   * The time at which Spark planned a batch, by that driver's clock, in ms since 1970.
   *
   * @return null if it is unknown; the begin of this write if no batch can have been planned before
   */
  Long plannedMs(long epoch) {
    if (root == null) {
      return begunMs;
    }
    Configuration conf = SparkSession.active().sessionState().newHadoopConf();
    Path offsets = new Path(new Path(root, "offsets"), Long.toString(epoch));
    try (BufferedReader lines =
        new BufferedReader(
            new InputStreamReader(
                offsets.getFileSystem(conf).open(offsets), StandardCharsets.UTF_8))) {
      lines.readLine(); // the version of the log
      String metadata = lines.readLine();
      JsonNode planned = metadata == null ? null : Json.parse(metadata).get("batchTimestampMs");
      return planned == null || planned.asLong() <= 0 ? null : planned.asLong();
    } catch (IOException | RuntimeException e) {
      return null;
    }
  }
}
