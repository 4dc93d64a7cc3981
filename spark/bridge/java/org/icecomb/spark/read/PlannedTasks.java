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
 * The tasks of a scan, made of the pages of its plan as they come: nothing else of them is kept, and
 * what files share is held once.
 */
final class PlannedTasks implements Consumer<ScanPage> {

  /**
   * @param entry what the planner is told of it
   * @param deletePlace where deletes of its rows go, or null where none are written
   * @param task the file with what is deleted of it, where new deletes stand for these, or null
   */
  record ChangeableFile(String path, String entry, DeletePlace deletePlace, FileTask task) {}

  private final StructType columns;
  private final StructType partition;
  private final List<List<FileTask>> groups = new ArrayList<>();
  private final List<List<JsonNode>> groupingKeys = new ArrayList<>();
  private final List<ChangeableFile> changeable = new ArrayList<>();

  /** What later pages may name. */
  private List<FileTask> files = new ArrayList<>();

  private List<DeleteFile> deleteFiles = new ArrayList<>();
  private List<String> deletes = new ArrayList<>();
  private List<KeyColumns> keys = new ArrayList<>();
  private List<StructType> compared = new ArrayList<>();
  private Map<Object, Object> shared = new HashMap<>();

  /**
   * @param columns the columns that are read
   * @param partition the fields of {@code _partition} that are wanted, or null
   */
  PlannedTasks(StructType columns, StructType partition) {
    this.columns = columns;
    this.partition = partition;
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

  /** No more pages come. */
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
   * What each Spark task reads of the files that are chosen by their paths.
   *
   * @param grouping what tells the tasks apart
   * @param locations where files lie, as far as that was asked
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

  /** The parts of the files that are chosen by their paths. */
  Stream<FileTask> parts(Predicate<String> chosen) {
    return groups.stream().flatMap(List::stream).filter(task -> chosen.test(task.path()));
  }

  /** How many tasks there are, of all files. */
  int size() {
    return groups.size();
  }

  /** The files that may be changed, if that was asked for. */
  List<ChangeableFile> changeable() {
    return changeable;
  }

  // What files are made of

  StructType columns() {
    return columns;
  }

  StructType partition() {
    return partition;
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

  /** An equal value that was there before, so that files hold one. */
  @SuppressWarnings("unchecked")
  <T> T share(T value) {
    return value == null ? null : (T) shared.computeIfAbsent(value, same -> same);
  }
}
