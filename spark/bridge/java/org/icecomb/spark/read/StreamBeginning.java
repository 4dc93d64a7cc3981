package org.icecomb.spark.read;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;

/**
 * The initial offset of a stream, in a file of the checkpoint: the first batch may be run again
 * after the table has changed. Iceberg Java has the same file.
 */
final class StreamBeginning {

  private final Path file;
  private final FileSystem files;

  /**
   * @param checkpoint the folder of the source in the query's checkpoint
   */
  StreamBeginning(String checkpoint) {
    file = new Path(new Path(checkpoint, "offsets"), "0");
    try {
      files =
          file.getFileSystem(SparkSession.active().sessionState().newHadoopConf());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The stored offset, or null. */
  String read() {
    try {
      if (!files.exists(file)) {
        return null;
      }
      try (FSDataInputStream content = files.open(file)) {
        return new String(content.readAllBytes(), StandardCharsets.UTF_8);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Writes the offset atomically. */
  void write(String offset) {
    Path draft = new Path(file.getParent(), "." + UUID.randomUUID() + ".tmp");
    try {
      files.mkdirs(file.getParent());
      try (FSDataOutputStream content = files.create(draft, false)) {
        content.write(offset.getBytes(StandardCharsets.UTF_8));
      }
      if (!files.rename(draft, file)) {
        throw new IOException("Cannot rename " + draft + " to " + file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
