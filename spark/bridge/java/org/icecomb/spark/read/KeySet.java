package org.icecomb.spark.read;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.planner.Protocol.DeleteFile;

/** The keys of equality delete files that compare the same columns. */
final class KeySet implements ExecutorCache.Sized {

  private static final long ENTRY_BYTES = 64;
  private static final long VALUE_BYTES = 48;

  private final Set<Object> keys = new HashSet<>();
  private final LongSet numbers = new LongSet();
  private long keyBytes;

  /** A cache key, including types, as a column may have another type in the next query. */
  private record Key(EqualityDeletes deletes, String mapping) {}

  private KeySet() {}

  /**
   * The keys of delete files: each file is read once per executor, whatever other files apply to
   * the same data files.
   */
  static KeySet of(ColumnarReaderFactory factory, EqualityDeletes deletes) throws IOException {
    List<DeleteFile> files = deletes.files();
    return ExecutorCache.get(
        factory.settings().cache(),
        new Key(deletes, factory.mapping()),
        () -> files.size() == 1 ? read(factory, deletes, files.get(0)) : union(factory, deletes));
  }

  private static KeySet union(ColumnarReaderFactory factory, EqualityDeletes deletes)
      throws IOException {
    KeySet union = new KeySet();
    for (DeleteFile file : deletes.files()) {
      KeySet one = of(factory, new EqualityDeletes(deletes.columns(), deletes.fieldIds(), List.of(file)));
      one.numbers.forEach(union.numbers::add);
      if (union.keys.addAll(one.keys)) {
        union.keyBytes += one.keyBytes;
      }
    }
    return union;
  }

  private static KeySet read(
      ColumnarReaderFactory factory, EqualityDeletes deletes, DeleteFile file) throws IOException {
    KeySet set = new KeySet();
    StructType columns = ReadColumns.widened(new StructType(), deletes.columns());
    try (FormatReader reader = factory.openDeletes(file, columns, factory.nameMapping())) {
      KeyReader rows = null;
      while (reader.next()) {
        rows = rows == null ? keys(reader, columns, deletes, file) : rows;
        for (int row = 0; row < reader.rows(); row++) {
          set.add(rows, row);
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
                + "\n  hint: Read an older snapshot, or restore the file from a backup.");
      }
      paths.add(path);
    }
    return new KeyReader(vectors, paths);
  }

  private void add(KeyReader rows, int row) {
    if (rows.isNumber() && !rows.isNull(row)) {
      numbers.add(rows.number(row));
    } else {
      Object key = rows.key(row, true);
      if (keys.add(key)) {
        keyBytes += ENTRY_BYTES + bytes(key);
      }
    }
  }

  private static long bytes(Object key) {
    if (key instanceof List<?> values) {
      return VALUE_BYTES + values.stream().mapToLong(KeySet::bytes).sum();
    }
    if (key instanceof UTF8String text) {
      return VALUE_BYTES + text.numBytes();
    }
    return VALUE_BYTES + (key instanceof ByteBuffer binary ? binary.remaining() : 0);
  }

  private boolean contains(KeyReader rows, int row) {
    return rows.isNumber() && !rows.isNull(row)
        ? numbers.contains(rows.number(row))
        : keys.contains(rows.key(row, false));
  }

  @Override
  public long bytes() {
    return keyBytes + numbers.bytes();
  }

  /**
   * The rows of a batch that have none of the keys.
   *
   * @param rows the rows of the batch
   * @param among indices into the batch, or null for all of it
   * @return indices into the batch, or null if all its rows are live
   */
  int[] liveOf(KeyReader rows, int count, int[] among) {
    int candidates = among == null ? count : among.length;
    int[] live = new int[candidates];
    long[] all = rows.numbers(count);
    int found = 0;
    for (int i = 0; i < candidates; i++) {
      int row = among == null ? i : among[i];
      if (all == null ? !contains(rows, row) : !numbers.contains(all[row])) {
        live[found++] = row;
      }
    }
    return found == count ? null : Arrays.copyOf(live, found);
  }
}
