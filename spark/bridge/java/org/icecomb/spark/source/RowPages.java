package org.icecomb.spark.source;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;

/**
 * Rows in pages of about a mebibyte, to be read by {@link Reader}. The first page identifies the
 * task attempt that wrote them.
 */
final class RowPages implements Iterator<byte[]> {

  private static final int PAGE = 1 << 20;

  private final Iterator<InternalRow> rows;
  private final StructType columns;
  private UnsafeProjection projection;
  private byte[] first;

  RowPages(Iterator<InternalRow> rows, StructType columns, long attempt) {
    this.rows = rows;
    this.columns = columns;
    this.first = number(attempt);
  }

  private static byte[] number(long value) {
    return ByteBuffer.allocate(Long.BYTES).putLong(value).array();
  }

  @Override
  public boolean hasNext() {
    return first != null || rows.hasNext();
  }

  @Override
  public byte[] next() {
    if (first != null) {
      byte[] page = first;
      first = null;
      return page;
    }
    ByteArrayOutputStream page = new ByteArrayOutputStream();
    while (rows.hasNext() && page.size() < PAGE) {
      byte[] row = unsafe(rows.next()).getBytes();
      // eight bytes, because rows must be aligned to eight bytes
      page.writeBytes(number(row.length));
      page.writeBytes(row);
    }
    return page.toByteArray();
  }

  private UnsafeRow unsafe(InternalRow row) {
    if (row instanceof UnsafeRow binary) {
      return binary;
    }
    if (projection == null) {
      projection = UnsafeProjection.create(columns);
    }
    return projection.apply(row);
  }

  /** The rows in the pages after the first. */
  static final class Reader implements Iterator<InternalRow> {

    private final Iterator<byte[]> pages;
    private final UnsafeRow row;
    private ByteBuffer page = ByteBuffer.allocate(0);

    Reader(Iterator<byte[]> pages, int columns) {
      this.pages = pages;
      this.row = new UnsafeRow(columns);
    }

    @Override
    public boolean hasNext() {
      return page.hasRemaining() || pages.hasNext();
    }

    /** Returns the same object each time, like all of Spark's row iterators. */
    @Override
    public InternalRow next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      if (!page.hasRemaining()) {
        page = ByteBuffer.wrap(pages.next());
      }
      int size = Math.toIntExact(page.getLong());
      row.pointTo(page.array(), Platform.BYTE_ARRAY_OFFSET + (long) page.position(), size);
      page.position(page.position() + size);
      return row;
    }
  }
}
