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
 * Where a streaming query keeps how far it is.
 *
 * @param root the folder, or null where each start of the query has a new one
 * @param begunMs when this write began, in ms since 1970
 */
record Checkpoint(String root, long begunMs) {

  /** As Spark chooses it (StreamingQueryManager). */
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
   * When Spark planned a batch, by the clock of the driver that did, in ms since 1970.
   *
   * @return null where that cannot be told; now, where no batch can have been planned before
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
