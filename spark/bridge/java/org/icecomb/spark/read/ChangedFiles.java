package org.icecomb.spark.read;

import java.io.IOException;
import java.io.Serializable;
import java.util.Map;
import org.icecomb.spark.planner.Protocol.DeletePlace;

/** The data files that a statement may delete rows of, by Spark's names for them. */
public final class ChangedFiles implements Serializable {

  /** Of a statement that reads no file. */
  public static final ChangedFiles NONE = new ChangedFiles(Map.of(), Map.of(), null);

  private final Map<String, DeletePlace> places;
  private final Map<String, FileTask> deleted;
  private final ColumnarReaderFactory readers;

  /**
   * @param deleted the files among them that have delete files of their own
   * @param readers open delete files, or null where there are none
   */
  ChangedFiles(
      Map<String, DeletePlace> places,
      Map<String, FileTask> deleted,
      ColumnarReaderFactory readers) {
    this.places = places;
    this.deleted = deleted;
    this.readers = readers;
  }

  /** Where deletes of a file's rows go. */
  public DeletePlace place(String path) {
    DeletePlace place = places.get(path);
    if (place == null) {
      throw new IllegalStateException(
          "A statement deletes rows of a file that it did not plan to read: " + path);
    }
    return place;
  }

  /** Positions deleted before, of a file with delete files of its own; null for other files. */
  public long[] deletedBefore(String path) throws IOException {
    FileTask task = deleted.get(path);
    if (task == null) {
      return null;
    }
    PositionDeletes found = PositionDeletes.of(readers, task);
    return found == null ? new long[0] : found.positions();
  }
}
