package org.icecomb.spark.write;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A task's message to the driver: the data files and delete files that it has finished. */
record WrittenFiles(List<DataFile> files, List<DeleteFile> deletes)
    implements WriterCommitMessage {

  /**
   * One finished data file.
   *
   * @param json its description for the planner, as JSON text
   */
  record DataFile(String path, String json) implements Serializable {}

  /**
   * One finished position delete file, or the positions of one data file.
   *
   * @param path the path; null if there is no file
   * @param json its description for the planner, as JSON text
   * @param changed Spark's names of the data files that it applies to
   */
  record DeleteFile(String path, String json, List<String> changed) implements Serializable {}
}
