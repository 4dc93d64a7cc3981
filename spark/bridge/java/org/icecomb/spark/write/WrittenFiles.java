package org.icecomb.spark.write;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** What a task tells the driver: the data files and delete files that it has finished. */
record WrittenFiles(List<DataFile> files, List<DeleteFile> deletes)
    implements WriterCommitMessage {

  /**
   * One finished data file.
   *
   * @param json what the planner is to be told of it: JSON text, which only the planner reads
   */
  record DataFile(String path, String json) implements Serializable {}

  /**
   * One finished file of position deletes.
   *
   * @param json what the planner is to be told of it
   * @param changed the data files that it is about, by Spark's names
   */
  record DeleteFile(String path, String json, List<String> changed) implements Serializable {}
}
