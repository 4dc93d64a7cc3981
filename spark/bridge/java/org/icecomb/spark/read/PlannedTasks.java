package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.DeleteFile;
import org.icecomb.spark.planner.Protocol.DeletePlace;
import org.icecomb.spark.planner.Protocol.FileRange;
import org.icecomb.spark.planner.Protocol.KeyColumns;
import org.icecomb.spark.planner.Protocol.PlannedFile;
import org.icecomb.spark.planner.Protocol.ScanPage;

/**
 * The tasks of a scan, built from the pages of its plan as they arrive: the pages are not kept, and
 * values shared by files are stored once.
 */
final class PlannedTasks implements Consumer<ScanPage> {

  /**
   * @param entry the planner's entry of it
   * @param deletePlace the target for deletes of its rows, or null if none are written
   * @param task the file with its deletes, if new deletes replace these, else null
   */
  record ChangeableFile(String path, String entry, DeletePlace deletePlace, FileTask task) {}

  private final StructType columns;
  private final StructType partition;
  private final StructType lineage;
  private final List<List<FileTask>> groups = new ArrayList<>();
  private final List<JsonNode> groupingKeys = new ArrayList<>();
  private final List<ChangeableFile> changeable = new ArrayList<>();

  /** Files that later pages may refer to. */
  private List<FileTask> files = new ArrayList<>();

  private List<DeleteFile> deleteFiles = new ArrayList<>();
  private List<String> deletes = new ArrayList<>();
  private List<KeyColumns> keys = new ArrayList<>();
  private List<StructType> compared = new ArrayList<>();
  private Map<Object, Object> shared = new HashMap<>();

  /**
   * @param columns the columns that are read
   * @param partition the requested fields of {@code _partition}, or null
   * @param lineage the requested columns of row lineage
   */
  PlannedTasks(StructType columns, StructType partition, StructType lineage) {
    this.columns = columns;
    this.partition = partition;
    this.lineage = lineage;
  }

  @Override
  public void accept(ScanPage page) {
    deletes.addAll(page.deletes());
    deleteFiles.addAll(page.deleteFiles());
    keys.addAll(page.keys());
    page.keys().forEach(key -> compared.add(Schemas.parse(key.schema())));
    page.files().forEach(this::add);
    page.partitions().forEach(this::group);
    page.groupingKeys().forEach(key -> groupingKeys.add(share(key)));
  }

  private void add(PlannedFile file) {
    FileTask whole = FileTask.whole(file, this);
    files.add(whole);
    JsonNode entry = file.entry();
    if (entry != null && !entry.isNull()) {
      DeletePlace place = share(file.deletePlace());
      boolean own = place != null && place.hasOwn();
      changeable.add(
          new ChangeableFile(file.path(), Json.text(entry), place, own ? whole : null));
    }
  }

  private void group(List<FileRange> ranges) {
    List<FileTask> tasks = new ArrayList<>(ranges.size());
    for (FileRange range : ranges) {
      FileTask file = files.get(range.file());
      tasks.add(file.part(range.start(), range.length(), range.last(), range.rows()));
    }
    groups.add(tasks);
  }

  /** Called after the last page. */
  PlannedTasks complete() {
    files = null;
    deleteFiles = null;
    deletes = null;
    keys = null;
    compared = null;
    shared = null;
    return this;
  }

  /**
   * The groups of each Spark task, restricted to the files selected by path.
   *
   * @param grouping the grouping of tasks
   * @param locations the known hosts of files
   */
  List<FileTask.Group> groups(
      Predicate<String> chosen, Grouping grouping, BlockLocations locations) {
    List<FileTask.Group> found = new ArrayList<>(groups.size());
    for (int i = 0; i < groups.size(); i++) {
      List<FileTask> tasks = groups.get(i);
      if (!tasks.stream().allMatch(task -> chosen.test(task.path()))) {
        tasks = tasks.stream().filter(task -> chosen.test(task.path())).toList();
      }
      if (!tasks.isEmpty()) {
        InternalRow key = groupingKeys.isEmpty() ? null : grouping.key(groupingKeys.get(i));
        found.add(new FileTask.Group(tasks, key, locations.hosts(tasks)));
      }
    }
    return found;
  }

  /** The parts of the files selected by path. */
  Stream<FileTask> parts(Predicate<String> chosen) {
    return groups.stream().flatMap(List::stream).filter(task -> chosen.test(task.path()));
  }

  /** The number of tasks, including all files. */
  int size() {
    return groups.size();
  }

  /** The files that may be changed, if requested. */
  List<ChangeableFile> changeable() {
    return changeable;
  }

  // For building file tasks

  StructType columns() {
    return columns;
  }

  StructType partition() {
    return partition;
  }

  StructType lineage() {
    return lineage;
  }

  KeyColumns keys(int place) {
    return keys.get(place);
  }

  StructType compared(int place) {
    return compared.get(place);
  }

  String deletes(int place) {
    return deletes.get(place);
  }

  List<DeleteFile> deleteFiles(List<Integer> places) {
    return share(places.stream().map(deleteFiles::get).toList());
  }

  /** An equal earlier value, if there is one, so that files share it. */
  @SuppressWarnings("unchecked")
  <T> T share(T value) {
    return value == null ? null : (T) shared.computeIfAbsent(value, same -> same);
  }
}
