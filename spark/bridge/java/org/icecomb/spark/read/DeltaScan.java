package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.read.ChangedFiles.ChangedFile;
import org.icecomb.spark.read.PlannedTasks.ChangeableFile;

/** The scan of rows that UPDATE, DELETE or MERGE may delete by position. */
public final class DeltaScan extends ChangeScan {

  DeltaScan(
      TableHandle table,
      StructType required,
      List<Condition> conditions,
      CaseInsensitiveStringMap options) {
    super(table, required, conditions, options);
  }

  @Override
  String changes() {
    return "rows";
  }

  /**
   * Before a statement reads, Spark finds the partition values of the rows that it changes, and
   * passes them here as {@code column IN (…)}: a null among them also stands for changed rows.
   */
  @Override
  Set<String> files(Predicate[] predicates) {
    return super.files(
        Arrays.stream(predicates).filter(each -> !namesNull(each)).toArray(Predicate[]::new));
  }

  private static boolean namesNull(Predicate predicate) {
    return Arrays.stream(predicate.children())
        .anyMatch(child -> child instanceof Literal<?> literal && literal.value() == null);
  }

  /** The files from which rows were read, for the tasks that write deletes. */
  public ChangedFiles changedFiles() {
    Map<Long, ChangedFile> files = new HashMap<>();
    boolean deleted = false;
    for (ChangeableFile file : tasks().changeable()) {
      ChangedFile other =
          files.put(
              MetadataColumns.fileId(file.path()),
              new ChangedFile(file.path(), file.deletePlace(), file.task()));
      if (other != null && !other.path().equals(file.path())) {
        throw SparkErrors.unsupported(
            "The data files " + file.path() + " and " + other.path() + " have the same hash, so "
                + "that deletes of their rows cannot be told apart",
            "Set the property write.delete.mode, write.update.mode or write.merge.mode to "
                + "copy-on-write for this statement: it rewrites both.");
      }
      deleted |= file.task() != null;
    }
    return new ChangedFiles(files, deleted ? ownReaders() : null);
  }

  private ColumnarReaderFactory ownReaders() {
    return ownReaders(plan().vectorized(), plan().batchRows(), plan().nameMapping());
  }

  /** The planner's entries of files that lose rows. */
  public List<JsonNode> entries(Collection<String> paths) {
    Set<String> wanted = new HashSet<>(paths);
    List<JsonNode> entries = new ArrayList<>();
    for (ChangeableFile file : tasks().changeable()) {
      if (wanted.remove(file.path())) {
        entries.add(Json.parse(file.entry()));
      }
    }
    if (!wanted.isEmpty()) {
      throw new IllegalStateException(
          "A statement deletes rows of files that it did not plan to read: " + wanted);
    }
    return entries;
  }
}
