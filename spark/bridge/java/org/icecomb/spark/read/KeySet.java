package org.icecomb.spark.read;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.icecomb.spark.planner.Protocol.DeleteFile;

/** The keys of equality delete files that compare the same columns. */
final class KeySet {

  /** Some 200 MB where keys are text. */
  private static final KeptFiles<Key, KeySet> KEPT = new KeptFiles<>(2_000_000);

  private final Set<Object> keys = new HashSet<>();
  private final LongSet numbers = new LongSet();

  /** A column may have another type in the next query. */
  private record Key(EqualityDeletes deletes, String mapping) {}

  private KeySet() {}

  /** The keys of delete files, read once for the tasks of an executor. */
  static KeySet of(ColumnarReaderFactory factory, EqualityDeletes deletes) throws IOException {
    return KEPT.get(
        new Key(deletes, factory.mapping()), () -> read(factory, deletes), KeySet::size);
  }

  private static KeySet read(ColumnarReaderFactory factory, EqualityDeletes deletes)
      throws IOException {
    KeySet set = new KeySet();
    StructType columns = ReadColumns.widened(new StructType(), deletes.columns());
    for (DeleteFile file : deletes.files()) {
      try (FormatReader reader = factory.openDeletes(file, columns, factory.nameMapping())) {
        KeyReader rows = null;
        while (reader.next()) {
          rows = rows == null ? keys(reader, columns, deletes, file) : rows;
          for (int row = 0; row < reader.rows(); row++) {
            set.add(rows, row);
          }
        }
      }
    }
    return set;
  }

  private static KeyReader keys(
      FormatReader reader, StructType columns, EqualityDeletes deletes, DeleteFile file)
      throws IOException {
    List<ColumnVector> vectors = new ArrayList<>();
    for (int i = 0; i < columns.size(); i++) {
      vectors.add(reader.column(i));
    }
    List<List<Integer>> paths = new ArrayList<>();
    for (int id : deletes.fieldIds()) {
      List<Integer> path = ReadColumns.path(columns, id);
      if (vectors.get(path.get(0)) == null) {
        throw new IOException(
            "The delete file " + file.path() + " has no column of field id " + id
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
  private long size() {
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
