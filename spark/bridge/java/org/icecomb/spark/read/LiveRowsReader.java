package org.icecomb.spark.read;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.ZoneId;
import java.util.ArrayList;
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
 * Spark's own vectorized reader, restricted to the live rows of each row group.
 *
 * <p>Live rows are passed as Parquet row ranges, like those of a column index filter, so the
 * decoder skips deleted rows and does not read whole pages of them. The files must have an offset
 * index.
 */
final class LiveRowsReader extends VectorizedParquetRecordReader {

  private final PositionDeletes deletes;
  private final boolean filtered;

  /**
   * @param deletes rows to leave out, or null
   * @param filtered whether the configuration has a filter, whose row ranges apply, too
   */
  LiveRowsReader(
      ZoneId int96Zone,
      RebaseSpec datetimeRebase,
      RebaseSpec int96Rebase,
      boolean offHeap,
      int batchRows,
      PositionDeletes deletes,
      boolean filtered) {
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
  }

  /** Begins to read; the context has the columns and the filter. */
  void begin(ParquetFile file, FileSplit part, TaskAttemptContext context)
      throws IOException, InterruptedException {
    file.begin(this, part, context);
    if (deletes != null) {
      try {
        skipDeletedRows();
      } catch (ReflectiveOperationException e) {
        throw new IllegalStateException("This version of Spark reads Parquet in another way", e);
      }
    }
  }

  /** Replaces the row group reader by a proxy, because its type is private to Spark's package. */
  private void skipDeletedRows() throws ReflectiveOperationException {
    Field readerField = SpecificParquetRecordReaderBase.class.getDeclaredField("reader");
    readerField.setAccessible(true);
    Object groups = readerField.get(this);
    Field fileField = groups.getClass().getDeclaredField("reader");
    fileField.setAccessible(true);
    ParquetFileReader file = (ParquetFileReader) fileField.get(groups);
    List<RowRanges> live = liveRows(file);
    totalRowCount = live.stream().mapToLong(RowRanges::rowCount).sum();
    int[] next = {0};
    Class<?> type = readerField.getType();
    readerField.set(
        this,
        Proxy.newProxyInstance(
            type.getClassLoader(),
            new Class<?>[] {type},
            (proxy, method, arguments) -> {
              if (method.getName().equals("readNextRowGroup")) {
                return nextRowGroup(file, live, next);
              }
              try {
                return method.invoke(groups, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            }));
  }

  private List<RowRanges> liveRows(ParquetFileReader file) throws ReflectiveOperationException {
    Method filterRanges = ParquetFileReader.class.getDeclaredMethod("getRowRanges", int.class);
    filterRanges.setAccessible(true);
    List<BlockMetaData> groups = file.getRowGroups();
    List<RowRanges> live = new ArrayList<>();
    for (int i = 0; i < groups.size(); i++) {
      BlockMetaData group = groups.get(i);
      RowRanges rows = deletes.live(group.getRowIndexOffset(), group.getRowCount());
      if (filtered) {
        rows = RowRanges.intersection(rows, (RowRanges) filterRanges.invoke(file, i));
      }
      live.add(rows);
    }
    return live;
  }

  private static PageReadStore nextRowGroup(ParquetFileReader file, List<RowRanges> live, int[] next)
      throws IOException {
    while (next[0] < live.size() && live.get(next[0]).rowCount() == 0) {
      next[0]++;
    }
    if (next[0] == live.size()) {
      return null;
    }
    int group = next[0]++;
    return file.readFilteredRowGroup(group, live.get(group));
  }
}
