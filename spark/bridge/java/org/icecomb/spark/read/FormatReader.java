package org.icecomb.spark.read;

import java.io.Closeable;
import java.io.IOException;
import org.apache.spark.sql.vectorized.ColumnVector;

/** A reader of a range of one file, of one format, as batches of selected columns. */
interface FormatReader extends Closeable {

  /** Opens the range of a file in a request. */
  static FormatReader open(FileRequest request) throws IOException {
    try {
      FormatReader reader =
          switch (request.format()) {
            case "parquet" -> ParquetFormatReader.open(request);
            case "orc" -> OrcFormatReader.open(request);
            case "avro" -> AvroFormatReader.open(request);
            default -> throw new UnsupportedOperationException("its format is " + request.format());
          };
      return new ContainedReader(reader, request);
    } catch (OutOfMemoryError | StackOverflowError e) {
      throw ContainedReader.error(request, e);
    }
  }

  /** Moves on to the next batch, if there is one. */
  boolean next() throws IOException;

  /** The number of rows of the batch. */
  int rows();

  /**
   * A column of the batch. The vectors stay the same for all batches; only their contents change.
   *
   * @param place the index of the column in the request
   * @return null if the file has no such column
   */
  ColumnVector column(int place);

  /** The positions of the batch's rows in the file; only if they were requested or are needed. */
  ColumnVector positions();
}
