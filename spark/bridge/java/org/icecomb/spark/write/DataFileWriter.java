package org.icecomb.spark.write;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
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
    this.writer = FormatWriter.open(file, conf, settings);
    this.floating = new FloatingColumns(settings.schema(), settings.metrics());
  }

  /** The partition of its rows. */
  PartitionKey key() {
    return key;
  }

  void write(InternalRow row) throws IOException {
    writer.write(row);
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
