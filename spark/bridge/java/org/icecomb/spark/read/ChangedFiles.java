package org.icecomb.spark.read;

import java.io.IOException;
import java.io.Serializable;
import java.util.Map;
import org.icecomb.spark.planner.Protocol.DeletePlace;

/** The data files that a statement may delete rows of, by {@link MetadataColumns#FILE_ID}. */
public final class ChangedFiles implements Serializable {

  /** Of a statement that reads no file. */
  public static final ChangedFiles NONE = new ChangedFiles(Map.of(), null);

  private final Map<Long, ChangedFile> files;
  private final ColumnarReaderFactory readers;

  /**
   * One of them.
   *
   * @param path Spark's name for it
   * @param place where deletes of its rows go
   * @param task the file with the delete files of its own that it has, or null for none
   */
  public record ChangedFile(String path, DeletePlace place, FileTask task)
      implements Serializable {}

  /**
   * @param readers open delete files, or null where there are none
   */
  ChangedFiles(Map<Long, ChangedFile> files, ColumnarReaderFactory readers) {
    this.files = files;
    this.readers = readers;
  }

  /** The file that a row says it is in. */
  public ChangedFile of(long fileId) {
    ChangedFile file = files.get(fileId);
    if (file == null) {
      throw new IllegalStateException(
          "A statement deletes rows of a file that it did not plan to read: " + fileId);
    }
    return file;
  }

  /** Positions deleted before, of a file with delete files of its own; null for other files. */
  public long[] deletedBefore(ChangedFile file) throws IOException {
    if (file.task() == null) {
      return null;
    }
    PositionDeletes found = PositionDeletes.of(readers, file.task());
    return found == null ? new long[0] : found.positions();
  }
}
