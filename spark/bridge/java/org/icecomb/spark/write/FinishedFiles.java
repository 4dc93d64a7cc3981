package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.util.RawValue;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.MergedRows;

/**
 * The files of all tasks of a write.
 *
 * @param files descriptions of the data files for the planner
 * @param deletes descriptions of the delete files for the planner
 * @param changed Spark's names of the data files that the delete files apply to
 * @param paths the paths of all files
 * @param merged Spark's row counts of a MERGE; null if it has none
 */
record FinishedFiles(
    ArrayNode files,
    ArrayNode deletes,
    Set<String> changed,
    List<String> paths,
    MergedRows merged) {

  static FinishedFiles of(WriterCommitMessage[] messages, MergedRows merged) {
    FinishedFiles all =
        new FinishedFiles(
            Json.array(), Json.array(), new LinkedHashSet<>(), new ArrayList<>(), merged);
    for (WriterCommitMessage message : messages) {
      if (message instanceof WrittenFiles written) {
        for (WrittenFiles.DataFile file : written.files()) {
          all.files.addRawValue(new RawValue(file.json()));
          all.paths.add(file.path());
        }
        for (WrittenFiles.DeleteFile file : written.deletes()) {
          all.deletes.addRawValue(new RawValue(file.json()));
          all.changed.addAll(file.changed());
          if (file.path() != null) {
            all.paths.add(file.path());
          }
        }
      }
    }
    return all;
  }
}
