package org.icecomb.spark.read;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Condition;

/**
 * A request to read one file.
 *
 * @param format {@code parquet}, {@code orc} or {@code avro}
 * @param rows the row count in its manifest; negative if unknown
 * @param columns the columns to read, with ids; their names matter only to the conditions. Times in
 *     nanoseconds are longs, whatever Spark is shown
 * @param positions whether to return the positions of rows
 * @param deletes deleted rows, which may be left out, or null
 * @param conditions conditions by which rows may be left out
 * @param mapping the name mapping for a file without ids, or null
 */
record FileRequest(
    Configuration hadoop,
    ReadSettings settings,
    String format,
    Path path,
    long start,
    long length,
    long rows,
    StructType columns,
    boolean positions,
    PositionDeletes deletes,
    List<Condition> conditions,
    NameMapping mapping) {

  FileRequest {
    columns = Nanoseconds.stored(columns);
  }

  /** An unknown number of rows. */
  static final long UNKNOWN = -1;

  /** An offset beyond the end of a file: a manifest may state too small a size. */
  static final long TO_THE_END = Long.MAX_VALUE / 2;

  /** Checks that the file has as many rows as its manifest states. */
  void checkRows(long found) throws IOException {
    if (rows >= 0 && rows != found) {
      throw new IOException(
          path + " has " + found + " rows, its manifest says " + rows
              + "\n  hint: Find out which is right before the file is replaced: rows may be lost.");
    }
  }

  UnsupportedOperationException withoutIds() {
    return new UnsupportedOperationException(
        "it has no field ids and the table has no name mapping\n"
            + "  hint: Set the table property schema.name-mapping.default.");
  }
}
