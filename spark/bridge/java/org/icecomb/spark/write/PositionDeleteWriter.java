package org.icecomb.spark.write;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.DeletePlace;
import org.icecomb.spark.planner.Protocol.WrittenDeletes;
import org.icecomb.spark.planner.Protocol.WrittenFile;
import org.icecomb.spark.read.ChangedFiles.ChangedFile;

/**
 * A writer of the position deletes of one task, each file sorted by data file and position.
 *
 * <p>Positions are buffered until the files are written: those of one data file or partition if
 * rows are sorted, else all. Deletes of a data file that has its own delete files are written
 * together with these, so that new files replace the old ones.
 */
final class PositionDeleteWriter {

  private final PositionDeltaWriterFactory factory;
  private final WriteSettings settings;
  private final String filePrefix;
  private final Map<Object, Unit> open = new HashMap<>();
  private final List<WrittenFiles.DeleteFile> finished = new ArrayList<>();
  private final CreatedFiles created = new CreatedFiles();
  private DataFileWriter writing;
  private long currentFile;
  private Unit currentUnit;

  /** Positions of the current data file; null before the first. */
  private Positions current;

  /** Deletes for one file, or for several if one is full. */
  private static final class Unit {

    private final DeletePlace place;

    /** Deletes by the table's names of data files, in byte order. */
    private final TreeMap<UTF8String, Deleted> files = new TreeMap<>();

    Unit(DeletePlace place) {
      this.place = place;
    }
  }

  private record Deleted(ChangedFile file, Positions positions) {}

  PositionDeleteWriter(PositionDeltaWriterFactory factory, String filePrefix) {
    this.factory = factory;
    this.settings = factory.deletes();
    this.filePrefix = filePrefix;
  }

  void delete(long file, long position) throws IOException {
    if (current == null || file != currentFile) {
      turnTo(file);
    }
    current.add(position);
  }

  private void turnTo(long fileId) throws IOException {
    ChangedFile file = factory.files().value().of(fileId);
    DeletePlace place = file.place();
    Object key = factory.byFile() ? (Object) fileId : place.partition();
    Unit unit = open.get(key);
    if (unit == null) {
      if (currentUnit != null && !settings.fanout()) {
        finishAll();
      }
      unit = new Unit(place);
      open.put(key, unit);
    }
    currentFile = fileId;
    currentUnit = unit;
    UTF8String name = UTF8String.fromString(place.file() == null ? file.path() : place.file());
    current =
        unit.files.computeIfAbsent(name, each -> new Deleted(file, new Positions())).positions();
  }

  List<WrittenFiles.DeleteFile> finish() throws IOException {
    finishAll();
    return List.copyOf(finished);
  }

  private void finishAll() throws IOException {
    for (Unit unit : open.values()) {
      write(unit);
    }
    open.clear();
    currentUnit = null;
    current = null;
  }

  private void write(Unit unit) throws IOException {
    if (factory.asVectors()) {
      unit.files.forEach(this::report);
      return;
    }
    Part part = null;
    InternalRow row = new GenericInternalRow(2);
    for (Map.Entry<UTF8String, Deleted> entry : unit.files.entrySet()) {
      long[] fresh = entry.getValue().positions().sorted();
      long[] before =
          factory.byFile() ? factory.files().value().deletedBefore(entry.getValue().file()) : null;
      row.update(0, entry.getKey());
      for (long position : before == null ? fresh : together(fresh, before)) {
        if (part == null) {
          part = new Part(unit.place, before != null);
        }
        row.setLong(1, position);
        part.write(row, entry, before == null || Arrays.binarySearch(fresh, position) >= 0);
        if (writing.isFull()) {
          part.finish();
          part = null;
        }
      }
    }
    if (part != null) {
      part.finish();
    }
  }

  /** Reports the positions of a data file, of which the commit makes a deletion vector. */
  private void report(UTF8String name, Deleted deleted) {
    long[] rows = deleted.positions().sorted();
    WrittenDeletes written =
        new WrittenDeletes(
            null, List.of(name.toString()), rows.length, false, Positions.packed(rows));
    finished.add(
        new WrittenFiles.DeleteFile(
            null, Json.text(Json.of(written)), List.of(deleted.file().path())));
  }

  private static long[] together(long[] fresh, long[] before) {
    Positions all = new Positions();
    all.addAll(before);
    all.addAll(fresh);
    return all.sorted();
  }

  /** A file that is being written. */
  private final class Part {

    private final String location;
    private final boolean replaces;
    private final List<String> names = new ArrayList<>();
    private final List<String> paths = new ArrayList<>();
    private Deleted last;
    private long deleted;

    Part(DeletePlace place, boolean replaces) throws IOException {
      String name =
          String.format(
              Locale.ROOT,
              "%s-%05d-deletes%s",
              filePrefix,
              created.size() + 1,
              settings.files().suffix());
      location = settings.locationOf(place.folder(), name);
      this.replaces = replaces;
      Path path = new Path(location);
      Configuration conf = factory.hadoop().value().value();
      created.add(path, conf);
      PartitionKey none = PartitionKey.of(List.of(), null);
      writing = new DataFileWriter(conf, settings.files(), path, location, none);
    }

    void write(InternalRow row, Map.Entry<UTF8String, Deleted> file, boolean isNew)
        throws IOException {
      if (last != file.getValue()) {
        last = file.getValue();
        names.add(file.getKey().toString());
        paths.add(last.file().path());
      }
      writing.write(row);
      deleted += isNew ? 1 : 0;
    }

    void finish() throws IOException {
      WrittenFile file = writing.finished();
      writing = null;
      WrittenDeletes written = new WrittenDeletes(file, names, deleted, replaces, null);
      finished.add(
          new WrittenFiles.DeleteFile(location, Json.text(Json.of(written)), List.copyOf(paths)));
    }
  }

  /** Deletes all files, finished or not. */
  void abort() throws IOException {
    if (writing != null) {
      writing.abandon();
      writing = null;
    }
    created.delete();
  }
}
