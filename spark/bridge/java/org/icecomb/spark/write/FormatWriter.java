package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.catalyst.InternalRow;

/** A writer of rows to one file of a format. */
interface FormatWriter {

  void write(InternalRow row) throws IOException;

  /** The approximate size of the file in bytes, including buffered rows. */
  long size() throws IOException;

  /** Finishes the file. */
  Contents finish() throws IOException;

  /** Closes what is open; the caller deletes the file. */
  void close() throws IOException;

  /**
   * The description of a finished file.
   *
   * @param splitOffsets the offsets of its parts that can be read separately
   * @param columns see {@link ColumnMetrics#toJson}
   */
  record Contents(List<Long> splitOffsets, ArrayNode columns) {}

  /** Begins a file. */
  static FormatWriter open(PlainOutputFile file, Configuration conf, FileSettings settings)
      throws IOException {
    return switch (settings.format()) {
      case PARQUET -> new ParquetFormatWriter(file, conf, settings);
      case ORC -> new OrcFormatWriter(file, conf, settings);
      case AVRO -> new AvroFormatWriter(file, settings);
    };
  }
}
