package org.icecomb.spark.read;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Reads a range of one file, of one format, as batches of chosen columns. */
interface FormatReader extends Closeable {

  /** Opens the range of a file that a request names. */
  static FormatReader open(FileRequest request) throws IOException {
    return switch (request.format()) {
      case "parquet" -> ParquetFormatReader.open(request);
      case "orc" -> OrcFormatReader.open(request);
      case "avro" -> AvroFormatReader.open(request);
      default -> throw new UnsupportedOperationException("its format is " + request.format());
    };
  }

  /** Moves on to the next batch, if there is one. */
  boolean next() throws IOException;

  /** How many rows the batch has. */
  int rows();

  /**
   * A column of the batch. The vectors stay the same for all batches; only their contents change.
   *
   * @param place of the column among those that were asked for
   * @return null when the file has no such column
   */
  ColumnVector column(int place);

  /** The positions in the file of the batch's rows; only where they were asked for or are needed. */
  ColumnVector positions();

  /** Whether the rows that the request calls deleted were left out. */
  boolean skipsDeleted();
}
