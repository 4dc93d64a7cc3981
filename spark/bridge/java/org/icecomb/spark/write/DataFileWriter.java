package org.icecomb.spark.write;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.memory.SparkOutOfMemoryError;
import org.apache.spark.sql.catalyst.InternalRow;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.WrittenFile;

/** A writer of one file of a table, which describes the finished file. */
final class DataFileWriter {

  private static final int ROWS_BETWEEN_SIZE_CHECKS = 1_000;

  private final FileSettings settings;
  private final PlainOutputFile file;
  private final String location;
  private final PartitionKey key;
  private final FormatWriter writer;
  private final FloatingColumns floating;
  private long rows;

  /**
   * @param location the path for the table's metadata
   */
  DataFileWriter(
      Configuration conf, FileSettings settings, Path path, String location, PartitionKey key)
      throws IOException {
    this.settings = settings;
    this.file = new PlainOutputFile(path, conf);
    this.location = location;
    this.key = key;
    this.writer = opened(conf);
    this.floating = new FloatingColumns(settings.schema(), settings.metrics());
  }

  /** The partition of its rows. */
  PartitionKey key() {
    return key;
  }

  private FormatWriter opened(Configuration conf) throws IOException {
    try {
      return FormatWriter.open(file, conf, settings);
    } catch (OutOfMemoryError e) {
      throw withoutMemory(e);
    }
  }

  /**
   * The error of a file whose properties ask for more memory than there is, such as bloom filters
   * of many columns; as an {@code OutOfMemoryError} it would end the executor, or a local
   * application.
   */
  private IOException withoutMemory(OutOfMemoryError error) {
    if (error instanceof SparkOutOfMemoryError) {
      throw error;
    }
    IOException found =
        new IOException(
            "There is no memory to write " + location + " (" + error.getMessage() + ")"
                + "\n  hint: Look at the table's properties, such as"
                + " write.parquet.bloom-filter-max-bytes; else give Spark more memory.");
    // Spark looks for fatal errors in causes, too
    found.setStackTrace(error.getStackTrace());
    return found;
  }

  void write(InternalRow row) throws IOException {
    try {
      writer.write(row);
    } catch (OutOfMemoryError e) {
      throw withoutMemory(e);
    }
    floating.add(row);
    rows++;
  }

  boolean isFull() throws IOException {
    return rows % ROWS_BETWEEN_SIZE_CHECKS == 0 && writer.size() >= settings.targetBytes();
  }

  WrittenFiles.DataFile finish() throws IOException {
    return new WrittenFiles.DataFile(location, Json.text(Json.of(finished())));
  }

  /** Finishes the file; returns its description for the planner. */
  WrittenFile finished() throws IOException {
    FormatWriter.Contents contents = writer.finish();
    floating.complete(contents.columns());
    return new WrittenFile(
        location,
        file.length(),
        rows,
        key.toJson(),
        contents.splitOffsets(),
        Json.text(contents.columns()));
  }

  /** Closes what is open; the caller deletes the file. */
  void abandon() {
    try {
      writer.close();
    } catch (IOException | RuntimeException e) {
      // The write has failed already, and that error is the one to report.
    }
  }
}
