package org.icecomb.spark.read;

import java.io.IOException;
import java.io.Serializable;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.PrimitiveIterator;
import java.util.stream.IntStream;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;
import org.apache.parquet.internal.column.columnindex.OffsetIndex;
import org.apache.parquet.internal.filter2.columnindex.RowRanges;
import org.icecomb.spark.planner.Protocol.DeleteFile;

/** The sorted positions of a data file's deleted rows. */
final class PositionDeletes {

  /** The number of rows from which on a run of deleted rows is not decoded. */
  private static final int LONG_RUN = 1 << 10;

  private final long[] positions;
  private long applied;

  private PositionDeletes(long[] positions) {
    this.positions = positions;
  }

  /**
   * Position delete files that apply to a data file, or its deletion vector.
   *
   * @param path the data file's path in the delete files
   */
  record Files(String path, List<DeleteFile> files) implements Serializable {}

  /** The deleted rows of a task's file, or null for none. */
  static PositionDeletes of(ColumnarReaderFactory factory, FileTask task) throws IOException {
    if (task.deletes() != null) {
      return unpack(task.deletes());
    }
    if (task.positionDeleteFiles() == null) {
      return null;
    }
    List<long[]> found = new ArrayList<>();
    for (DeleteFile file : task.positionDeleteFiles().files()) {
      found.add(
          file.offset() == null
              ? PositionDeleteFile.of(factory, file).positions(task.positionDeleteFiles().path())
              : DeletionVector.of(factory, file).positions());
    }
    long[] positions =
        found.stream().flatMapToLong(Arrays::stream).sorted().distinct().toArray();
    return positions.length == 0 ? null : new PositionDeletes(positions);
  }

  /** Decodes the planner's positions: base64 of zlib of little-endian 64-bit differences. */
  static PositionDeletes unpack(String packed) {
    Inflater inflater = new Inflater();
    try {
      inflater.setInput(Base64.getDecoder().decode(packed));
      byte[] bytes = new byte[1 << 16];
      int size = 0;
      while (!inflater.finished()) {
        int read = inflater.inflate(bytes, size, bytes.length - size);
        size += read;
        if (read == 0 && (inflater.needsInput() || inflater.needsDictionary())) {
          throw new IllegalArgumentException("the packed positions end too early");
        }
        if (size == bytes.length) {
          bytes = Arrays.copyOf(bytes, bytes.length * 2);
        }
      }
      long[] positions = new long[size / Long.BYTES];
      ByteBuffer.wrap(bytes, 0, size).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(positions);
      for (int i = 1; i < positions.length; i++) {
        positions[i] += positions[i - 1];
      }
      return new PositionDeletes(positions);
    } catch (DataFormatException e) {
      throw new IllegalArgumentException("the packed positions are not zlib data", e);
    } finally {
      inflater.end();
    }
  }

  long[] positions() {
    return positions;
  }

  /** Index of the first deleted position at or after the given one. */
  private int firstFrom(long position) {
    int index = Arrays.binarySearch(positions, position);
    return index < 0 ? -index - 1 : index;
  }

  /**
   * The rows of a row group without its long runs of deleted rows. Others are read and then left
   * out: a gap in the rows that are decoded takes longer than decoding some hundred values.
   *
   * @param firstRow the position of the group's first row in the file
   */
  RowRanges withoutRuns(long firstRow, long rowCount) {
    List<long[]> ranges = new ArrayList<>();
    long next = 0;
    int begin = firstFrom(firstRow);
    while (begin < positions.length && positions[begin] < firstRow + rowCount) {
      int end = begin + 1;
      while (end < positions.length
          && positions[end] == positions[end - 1] + 1
          && positions[end] < firstRow + rowCount) {
        end++;
      }
      if (end - begin >= LONG_RUN) {
        long run = positions[begin] - firstRow;
        if (run > next) {
          ranges.add(new long[] {next, run - 1});
        }
        next = run + (end - begin);
        applied += end - begin;
      }
      begin = end;
    }
    if (next < rowCount) {
      ranges.add(new long[] {next, rowCount - 1});
    }
    PrimitiveIterator.OfInt pages = IntStream.range(0, ranges.size()).iterator();
    return RowRanges.create(rowCount, pages, new RangesAsPages(ranges));
  }

  /**
   * The live rows of a batch.
   *
   * @param rows positions in the file, increasing
   * @return indices into the batch, or null if all are live
   */
  int[] liveOf(long[] rows, int count) {
    int next = count == 0 ? positions.length : firstFrom(rows[0]);
    if (next == positions.length || positions[next] > rows[count - 1]) {
      return null;
    }
    int[] live = new int[count];
    int found = 0;
    for (int i = 0; i < count; i++) {
      while (next < positions.length && positions[next] < rows[i]) {
        next++;
      }
      if (next == positions.length || positions[next] != rows[i]) {
        live[found++] = i;
      }
    }
    applied += count - found;
    return found == count ? null : Arrays.copyOf(live, found);
  }

  /** The number of rows left out so far. */
  long applied() {
    return applied;
  }

  /** Ranges in the form of pages, the only form from which row ranges can be built. */
  private record RangesAsPages(List<long[]> ranges) implements OffsetIndex {

    @Override
    public int getPageCount() {
      return ranges.size();
    }

    @Override
    public long getFirstRowIndex(int page) {
      return ranges.get(page)[0];
    }

    @Override
    public long getLastRowIndex(int page, long rowCount) {
      return ranges.get(page)[1];
    }

    @Override
    public long getOffset(int page) {
      throw new UnsupportedOperationException();
    }

    @Override
    public int getCompressedPageSize(int page) {
      throw new UnsupportedOperationException();
    }
  }
}
