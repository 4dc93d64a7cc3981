package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.read.PlannedTasks.ChangeableFile;

/**
 * The scan of files that UPDATE, DELETE or MERGE rewrites, each with all its live rows.
 *
 * <p>Filters only select files here. Before the files are read, Spark runs a query to find those
 * with rows that change, and passes them as a filter.
 */
public final class RewriteScan extends ChangeScan {

  private List<String> read = List.of();

  RewriteScan(
      TableHandle table,
      StructType required,
      List<Condition> conditions,
      CaseInsensitiveStringMap options) {
    super(table, required, conditions, options);
  }

  /** The files that the statement replaces: exactly those that its tasks read. */
  public List<JsonNode> replacedFiles() {
    return read.stream().map(Json::parse).toList();
  }

  @Override
  public InputPartition[] planInputPartitions() {
    read =
        tasks().changeable().stream()
            .filter(file -> isRead(file.path()))
            .map(ChangeableFile::entry)
            .toList();
    return super.planInputPartitions();
  }

  /** Only the file: the other rows of a rewritten file must be read, too. */
  @Override
  public NamedReference[] filterAttributes() {
    return new NamedReference[] {Expressions.column(MetadataColumns.FILE_ID)};
  }

  @Override
  Set<String> files(Predicate[] predicates) {
    // files with the same hash are rewritten together
    Map<Long, List<String>> planned =
        tasks().changeable().stream()
            .map(ChangeableFile::path)
            .collect(Collectors.groupingBy(MetadataColumns::fileId));
    Set<Long> touched = null;
    for (Predicate predicate : predicates) {
      Set<Long> named = NamedFiles.ids(predicate);
      if (named == null) {
        continue;
      }
      if (!planned.keySet().containsAll(named)) {
        // Changed rows would be left out: the two queries of the statement saw different states.
        throw new IllegalStateException(
            "A statement changes rows of files it did not plan to read: " + named);
      }
      touched = touched == null ? named : touched;
      touched.retainAll(named);
    }
    return touched == null
        ? null
        : touched.stream().flatMap(id -> planned.get(id).stream()).collect(Collectors.toSet());
  }

  @Override
  String changes() {
    return "files";
  }

  @Override
  List<Condition> conditionsOnRows() {
    return List.of();
  }
}
