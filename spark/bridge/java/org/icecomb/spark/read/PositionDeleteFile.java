package org.icecomb.spark.read;

import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.DeleteFile;

/** The content of a position delete file: deleted positions by data file. */
final class PositionDeleteFile implements ExecutorCache.Sized {

  /** Reserved ids of Iceberg's specification, and the names in files without ids. */
  private static final StructType COLUMNS =
      Schemas.struct(
          List.of(
              Schemas.withId("file_path", DataTypes.StringType, 2147483546),
              Schemas.withId("pos", DataTypes.LongType, 2147483545)));

  private static final String NAMES =
      "[{\"field-id\": 2147483546, \"names\": [\"file_path\"]},"
          + " {\"field-id\": 2147483545, \"names\": [\"pos\"]}]";

  private static final long PATH_BYTES = 160;

  private final Map<UTF8String, Positions> byPath = new HashMap<>();

  /** A growing list of positions in one data file. */
  private static final class Positions {

    private long[] rows = new long[16];
    private int count;

    void add(long row) {
      if (count == rows.length) {
        rows = Arrays.copyOf(rows, Math.multiplyExact(count, 2));
      }
      rows[count++] = row;
    }
  }

  private record Key(DeleteFile file) {}

  private PositionDeleteFile() {}

  /** The content of a delete file, read once per executor. */
  static PositionDeleteFile of(ColumnarReaderFactory factory, DeleteFile file) throws IOException {
    return ExecutorCache.get(factory.settings().cache(), new Key(file), () -> read(factory, file));
  }

  private static PositionDeleteFile read(ColumnarReaderFactory factory, DeleteFile file)
      throws IOException {
    PositionDeleteFile contents = new PositionDeleteFile();
    try (FormatReader reader =
        factory.openDeletes(file, COLUMNS, NameMapping.parse(NAMES))) {
      UTF8String path = null;
      Positions positions = null;
      while (reader.next()) {
        if (reader.column(0) == null || reader.column(1) == null) {
          throw new IOException(
              "The delete file " + file.path() + " has no column file_path or pos\n"
                  + "  hint: Read an older snapshot, or restore the file from a backup.");
        }
        for (int row = 0; row < reader.rows(); row++) {
          String wrong =
              reader.column(0).isNullAt(row)
                  ? "a null in file_path"
                  : reader.column(1).isNullAt(row)
                      ? "a null in pos"
                      : reader.column(1).getLong(row) < 0
                          ? "position " + reader.column(1).getLong(row)
                          : null;
          if (wrong != null) {
            throw new IOException(
                "Delete file " + file.path() + " holds " + wrong
                    + "\n  hint: Restore the file from a backup, or read an older snapshot.");
          }
          UTF8String next = reader.column(0).getUTF8String(row);
          if (!next.equals(path)) {
            path = next.clone();
            positions = contents.byPath.computeIfAbsent(path, each -> new Positions());
          }
          positions.add(reader.column(1).getLong(row));
        }
      }
    }
    return contents;
  }

  /** The deleted rows of a data file. */
  long[] positions(String path) {
    Positions found = byPath.get(UTF8String.fromString(path));
    return found == null ? new long[0] : Arrays.copyOf(found.rows, found.count);
  }

  @Override
  public long bytes() {
    return byPath.entrySet().stream()
        .mapToLong(
            each ->
                PATH_BYTES
                    + each.getKey().numBytes()
                    + (long) Long.BYTES * each.getValue().rows.length)
        .sum();
  }
}
