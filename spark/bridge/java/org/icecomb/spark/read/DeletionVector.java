package org.icecomb.spark.read;

import java.io.EOFException;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.Path;
import org.icecomb.spark.planner.Protocol.DeleteFile;
import org.roaringbitmap.InvalidRoaringFormat;
import org.roaringbitmap.PeekableIntIterator;
import org.roaringbitmap.RoaringBitmap;

/**
 * The bytes of a deletion vector in a Puffin file: the deleted positions of one data file (Puffin
 * specification, "deletion-vector-v1").
 */
final class DeletionVector implements ExecutorCache.Sized {

  private static final int MAGIC = 0xD1D33964;
  private static final int CHECKSUM_BYTES = 4;
  private static final int HEAD_BYTES = 8;
  private static final int PIECE = 1 << 24;

  private final DeleteFile place;
  private final byte[] blob;

  DeletionVector(DeleteFile place, byte[] blob) {
    this.place = place;
    this.blob = blob;
  }

  /** A vector, read once per executor: the parts of its data file may be read by several tasks. */
  static DeletionVector of(ColumnarReaderFactory factory, DeleteFile place) throws IOException {
    return ExecutorCache.get(
        factory.settings().cache(), place, () -> new DeletionVector(place, read(factory, place)));
  }

  private static byte[] read(ColumnarReaderFactory factory, DeleteFile place) throws IOException {
    Path path = new Path(place.path());
    try (FSDataInputStream in = path.getFileSystem(factory.configuration()).open(path)) {
      byte[] blob = new byte[Math.min(place.length(), PIECE)];
      in.readFully(place.offset(), blob);
      // in pieces, as memory is allocated for what a damaged manifest states
      while (blob.length < place.length()) {
        int read = blob.length;
        blob = Arrays.copyOf(blob, (int) Math.min(place.length(), 2L * read));
        in.readFully(place.offset() + read, blob, read, blob.length - read);
      }
      return blob;
    } catch (FileNotFoundException e) {
      throw new IOException("A delete file of the table is missing: " + place.path(), e);
    } catch (EOFException e) {
      throw damaged(place, "ends beyond its file", e);
    }
  }

  /** The deleted positions, ascending. */
  long[] positions() throws IOException {
    ByteBuffer content = ByteBuffer.wrap(blob);
    int covered = blob.length - CHECKSUM_BYTES;
    if (covered < HEAD_BYTES || content.getInt(0) != covered - CHECKSUM_BYTES) {
      throw damaged(place, "states another length than " + blob.length, null);
    }
    CRC32 checksum = new CRC32();
    checksum.update(blob, 4, covered - 4);
    if (content.getInt(4) != MAGIC || content.getInt(covered) != (int) checksum.getValue()) {
      throw damaged(place, "has another magic or checksum than its bytes", null);
    }
    content.position(HEAD_BYTES).limit(covered);
    try {
      return bitmap(content.slice().order(ByteOrder.LITTLE_ENDIAN));
    } catch (InvalidRoaringFormat
        | BufferUnderflowException
        | IndexOutOfBoundsException
        | IllegalArgumentException e) {
      throw damaged(place, "is not a bitmap", e);
    }
  }

  private long[] bitmap(ByteBuffer content) throws IOException {
    // positions take memory only when the bitmaps, which are small, have as many
    List<RoaringBitmap> low = new ArrayList<>();
    List<Long> keys = new ArrayList<>();
    long found = 0;
    long bitmaps = content.getLong();
    long lastKey = -1;
    for (long i = 0; i < bitmaps; i++) {
      long key = Integer.toUnsignedLong(content.getInt());
      RoaringBitmap bitmap = new RoaringBitmap();
      try {
        bitmap.deserialize(content.slice().order(ByteOrder.LITTLE_ENDIAN));
      } catch (IOException e) {
        throw damaged(place, "is not a bitmap", e);
      }
      content.position(content.position() + bitmap.serializedSizeInBytes());
      found += bitmap.getLongCardinality();
      if (key <= lastKey || found > place.rows()) {
        throw damaged(place, "has other positions than " + place.rows() + " in order", null);
      }
      lastKey = key;
      if (!bitmap.isEmpty()) {
        keys.add(key);
        low.add(bitmap);
      }
    }
    if (found != place.rows() || content.hasRemaining()) {
      throw damaged(place, "has " + found + " positions, its manifest says " + place.rows(), null);
    }
    long[] positions = new long[Math.toIntExact(found)];
    int count = 0;
    for (int i = 0; i < low.size(); i++) {
      PeekableIntIterator next = low.get(i).getIntIterator();
      while (next.hasNext()) {
        positions[count++] = keys.get(i) << Integer.SIZE | Integer.toUnsignedLong(next.next());
      }
    }
    if (count != found) {
      throw damaged(place, "has containers with other counts than they state", null);
    }
    return positions;
  }

  private static IOException damaged(DeleteFile place, String problem, Exception cause) {
    return new IOException(
        "The deletion vector at offset " + place.offset() + " of " + place.path() + " " + problem
            + "\n  hint: Read an older snapshot, or restore the file from a backup.",
        cause);
  }

  @Override
  public long bytes() {
    return blob.length;
  }
}
