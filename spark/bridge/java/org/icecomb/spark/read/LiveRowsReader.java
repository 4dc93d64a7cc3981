package org.icecomb.spark.read;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.ZoneId;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.internal.filter2.columnindex.RowRanges;
import org.apache.spark.sql.catalyst.util.RebaseDateTime.RebaseSpec;
import org.apache.spark.sql.execution.datasources.parquet.SpecificParquetRecordReaderBase;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;

/**
 * Spark's own vectorized reader, which counts the positions of rows and does not decode long runs of
 * deleted ones.
 *
 * <p>The rows to decode are passed as Parquet row ranges, like those of a column index filter, so
 * that whole pages of deleted rows are not read. This needs files with an offset index.
 */
final class LiveRowsReader extends VectorizedParquetRecordReader {

  private final PositionDeletes deletes;
  private final boolean filtered;
  private final RowNumbers numbers;

  /** The first and last positions of rows in the row groups that were opened, but not yet read. */
  private final Deque<long[]> opened = new ArrayDeque<>();

  /**
   * @param deletes rows of which long runs are left out, or null
   * @param filtered whether the configuration has a filter, whose row ranges apply, too
   * @param numbers the positions of each batch's rows, or null
   */
  LiveRowsReader(
      ZoneId int96Zone,
      RebaseSpec datetimeRebase,
      RebaseSpec int96Rebase,
      boolean offHeap,
      int batchRows,
      PositionDeletes deletes,
      boolean filtered,
      RowNumbers numbers) {
    super(
        int96Zone,
        datetimeRebase.mode().toString(),
        datetimeRebase.timeZone(),
        int96Rebase.mode().toString(),
        int96Rebase.timeZone(),
        offHeap,
        batchRows);
    this.deletes = deletes;
    this.filtered = filtered;
    this.numbers = numbers;
  }

  /** Begins to read; the context has the columns and the filter. */
  void begin(ParquetFile file, FileSplit part, TaskAttemptContext context)
      throws IOException, InterruptedException {
    file.begin(this, part, context);
    if (numbers != null) {
      try {
        chooseRows();
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException("This version of Spark reads Parquet in another way", e);
      }
    }
  }

  @Override
  public boolean nextBatch() throws IOException {
    if (!super.nextBatch()) {
      return false;
    }
    if (numbers != null) {
      number(resultBatch().numRows());
    }
    return true;
  }

  private void number(int count) {
    numbers.clear();
    while (numbers.size() < count) {
      long[] range = opened.getFirst();
      int taken = (int) Math.min(count - numbers.size(), range[1] - range[0] + 1);
      numbers.add(range[0], taken);
      range[0] += taken;
      if (range[0] > range[1]) {
        opened.removeFirst();
      }
    }
  }

  /** Replaces the row group reader by a proxy, because its type is private to Spark's package. */
  private void chooseRows() throws ReflectiveOperationException {
    Field readerField = SpecificParquetRecordReaderBase.class.getDeclaredField("reader");
    readerField.setAccessible(true);
    Object groups = readerField.get(this);
    Field fileField = groups.getClass().getDeclaredField("reader");
    fileField.setAccessible(true);
    ParquetFileReader file = (ParquetFileReader) fileField.get(groups);
    List<RowRanges> chosen = chosenRows(file);
    totalRowCount = chosen.stream().mapToLong(RowRanges::rowCount).sum();
    int[] next = {0};
    Class<?> type = readerField.getType();
    readerField.set(
        this,
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) -> {
              if (method.getName().equals("readNextRowGroup")) {
                return nextRowGroup(file, chosen, next);
              }
              try {
                return method.invoke(groups, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            }));
  }

  private List<RowRanges> chosenRows(ParquetFileReader file) throws ReflectiveOperationException {
    Method filterRanges = ParquetFileReader.class.getDeclaredMethod("getRowRanges", int.class);
    filterRanges.setAccessible(true);
    List<BlockMetaData> groups = file.getRowGroups();
    List<RowRanges> chosen = new ArrayList<>();
    for (int i = 0; i < groups.size(); i++) {
      BlockMetaData group = groups.get(i);
      RowRanges rows =
          deletes == null
              ? RowRanges.createSingle(group.getRowCount())
              : deletes.withoutRuns(group.getRowIndexOffset(), group.getRowCount());
      if (filtered) {
        rows = RowRanges.intersection(rows, (RowRanges) filterRanges.invoke(file, i));
      }
      chosen.add(rows);
    }
    return chosen;
  }

  private PageReadStore nextRowGroup(ParquetFileReader file, List<RowRanges> chosen, int[] next)
      throws IOException {
    while (next[0] < chosen.size() && chosen.get(next[0]).rowCount() == 0) {
      next[0]++;
    }
    if (next[0] == chosen.size()) {
      return null;
    }
    int group = next[0]++;
    RowRanges rows = chosen.get(group);
    long first = file.getRowGroups().get(group).getRowIndexOffset();
    for (RowRanges.Range range : rows.getRanges()) {
      opened.add(new long[] {first + range.from, first + range.to});
    }
    return file.readFilteredRowGroup(group, rows);
  }
}
