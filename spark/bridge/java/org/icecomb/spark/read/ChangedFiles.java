package org.icecomb.spark.read;

import java.io.IOException;
import java.io.Serializable;
import java.util.Map;
import org.icecomb.spark.planner.Protocol.DeletePlace;

/** The data files that a statement may delete rows of, by {@link MetadataColumns#FILE_ID}. */
public final class ChangedFiles implements Serializable {

  /** The files of a statement that reads none. */
  public static final ChangedFiles NONE = new ChangedFiles(Map.of(), null);

  private final Map<Long, ChangedFile> files;
  private final ColumnarReaderFactory readers;

  /**
   * A data file that a statement may delete rows of.
   *
   * @param path Spark's name of the file
   * @param place the target for deletes of its rows
   * @param task the file with its own delete files, or null if it has none
   */
  public record ChangedFile(String path, DeletePlace place, FileTask task)
      implements Serializable {}

  /**
   * @param readers opens delete files; null if there are none
   */
  ChangedFiles(Map<Long, ChangedFile> files, ColumnarReaderFactory readers) {
    this.files = files;
    this.readers = readers;
  }

  /** The file that contains a row. */
  public ChangedFile of(long fileId) {
    ChangedFile file = files.get(fileId);
    if (file == null) {
      throw new IllegalStateException(
          "A statement deletes rows of a file that it did not plan to read: " + fileId);
    }
    return file;
  }

  /** Positions deleted before, for a file with its own delete files; null for other files. */
  public long[] deletedBefore(ChangedFile file) throws IOException {
    if (file.task() == null) {
      return null;
    }
    PositionDeletes found = PositionDeletes.of(readers, file.task());
    return found == null ? new long[0] : found.positions();
  }
}
