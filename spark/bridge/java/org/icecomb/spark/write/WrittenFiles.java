package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.Base64;
import java.util.List;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.icecomb.spark.planner.Json;

/** What a task tells the driver: the data files that it has finished. */
record WrittenFiles(List<DataFile> files) implements WriterCommitMessage {

  /**
   * One finished data file.
   *
   * @param footer the file's last bytes: Parquet's footer, its length and the magic bytes
   * @param partition the partition values as a JSON array
   */
  record DataFile(String path, long size, long rows, byte[] footer, String partition)
      implements Serializable {

    ObjectNode toJson() {
      ObjectNode json = Json.object();
      json.put("path", path);
      json.put("size", size);
      json.put("rows", rows);
      json.put("footer", Base64.getEncoder().encodeToString(footer));
      json.set("partition", Json.parse(partition));
      return json;
    }
  }
}
