package org.icecomb.spark.source;

import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.UnsafeRow;
import org.apache.spark.unsafe.Platform;

/** The rows in pages written by {@link RowPages}, after the first page. */
final class PagedRows implements Iterator<InternalRow> {

  private final Iterator<byte[]> pages;
  private final UnsafeRow row;
  private ByteBuffer page = ByteBuffer.allocate(0);

  PagedRows(Iterator<byte[]> pages, int columns) {
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
