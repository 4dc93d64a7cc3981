package org.icecomb.spark.read;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.icecomb.spark.planner.Protocol.DeleteFile;

/** The keys of equality delete files that compare the same columns. */
final class KeySet {

  private final Set<Object> keys = new HashSet<>();
  private final LongSet numbers = new LongSet();

  private KeySet() {}

  static KeySet read(ColumnarReaderFactory factory, EqualityDeletes deletes) throws IOException {
    KeySet set = new KeySet();
    for (DeleteFile file : deletes.files()) {
      try {
        set.add(factory, deletes, file);
      } catch (UnsupportedOperationException e) {
        throw new UnsupportedOperationException(
            "Cannot read the delete file " + file.path() + ": " + e.getMessage(), e);
      } catch (FileNotFoundException e) {
        throw new IOException("A delete file of the table is missing: " + file.path(), e);
      }
    }
    return set;
  }

  private void add(ColumnarReaderFactory factory, EqualityDeletes deletes, DeleteFile file)
      throws IOException {
    StructType columns = ReadColumns.widened(new StructType(), deletes.columns());
    FileRequest request =
        new FileRequest(
            factory.configuration(),
            factory.settings(),
            file.format(),
            new Path(file.path()),
            0,
            file.size(),
            columns,
            false,
            null,
            List.of(),
            factory.nameMapping());
    try (FormatReader reader = FormatReader.open(request)) {
      KeyReader rows = null;
      while (reader.next()) {
        rows = rows == null ? keys(reader, columns, deletes) : rows;
        for (int row = 0; row < reader.rows(); row++) {
          add(rows, row);
        }
      }
    }
  }

  private static KeyReader keys(
      FormatReader reader, StructType columns, EqualityDeletes deletes) {
    List<ColumnVector> vectors = new ArrayList<>();
    for (int i = 0; i < columns.size(); i++) {
      vectors.add(reader.column(i));
    }
    List<List<Integer>> paths = new ArrayList<>();
    for (int id : deletes.fieldIds()) {
      List<Integer> path = ReadColumns.path(columns, id);
      if (vectors.get(path.get(0)) == null) {
        throw new UnsupportedOperationException(
            "it has no column of field id " + id
                + "\n  hint: read an older snapshot, or restore the file from a backup");
      }
      paths.add(path);
    }
    return new KeyReader(vectors, paths);
  }

  private void add(KeyReader rows, int row) {
    if (rows.isNumber() && !rows.isNull(row)) {
      numbers.add(rows.number(row));
    } else {
      keys.add(rows.key(row));
    }
  }

  private boolean contains(KeyReader rows, int row) {
    return rows.isNumber() && !rows.isNull(row)
        ? numbers.contains(rows.number(row))
        : keys.contains(rows.key(row));
  }

  /** How many keys there are. */
  long size() {
    return (long) keys.size() + numbers.size();
  }

  /**
   * Which rows of a batch have none of the keys.
   *
   * @param rows the rows of the batch
   * @param among indices into the batch, or null for all of it
   * @return indices into the batch, or null when all its rows are live
   */
  int[] liveOf(KeyReader rows, int count, int[] among) {
    int candidates = among == null ? count : among.length;
    int[] live = new int[candidates];
    int found = 0;
    for (int i = 0; i < candidates; i++) {
      int row = among == null ? i : among[i];
      if (!contains(rows, row)) {
        live[found++] = row;
      }
    }
    return found == count ? null : Arrays.copyOf(live, found);
  }
}
