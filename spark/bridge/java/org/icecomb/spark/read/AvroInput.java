package org.icecomb.spark.read;

import java.io.IOException;
import java.util.Arrays;
import org.apache.avro.mapred.FsInput;
import org.apache.hadoop.fs.Path;

/**
 * The bytes of an Avro file. Avro's reader takes memory for whatever length they state, so the
 * lengths in the header and before a block are looked at first, in the bytes that were read last.
 */
final class AvroInput extends FsInput {

  private static final int MAGIC_BYTES = 4;
  private static final int LONGEST_NUMBER = 10;
  private static final int MOST_KEPT = 1 << 16;
  /** More than Snappy can pack into a byte. */
  private static final long SNAPPY_RATIO = 64;

  private final Path path;
  private byte[] kept = {};
  private long keptAt;
  private long place;

  AvroInput(FileRequest request) throws IOException {
    super(request.path(), request.hadoop());
    this.path = request.path();
  }

  /** Checks the lengths of names and values in the header. */
  void checkHeader() throws IOException {
    place = MAGIC_BYTES;
    for (long entries = number(); entries != 0; entries = number()) {
      if (entries < 0) {
        entries = -entries;
        number();
      }
      for (long i = 0; i < entries; i++) {
        skip();
        skip();
      }
    }
  }

  /** Checks the lengths that the block at a position states, if there is one. */
  void checkBlock(long position, boolean snappy) throws IOException {
    if (position >= length()) {
      return;
    }
    place = position;
    number();
    long start = skip();
    long size = place - start;
    if (snappy && size > 0) {
      place = start;
      long unpacked = varint();
      if (unpacked < 0 || unpacked > SNAPPY_RATIO * size) {
        throw damaged(unpacked);
      }
    }
  }

  /** Skips bytes that follow their length; returns where they begin. */
  private long skip() throws IOException {
    long size = number();
    if (size < 0 || size > length() - place) {
      throw damaged(size);
    }
    long start = place;
    place += size;
    return start;
  }

  private long number() throws IOException {
    long value = varint();
    return value >>> 1 ^ -(value & 1);
  }

  private long varint() throws IOException {
    long value = 0;
    for (int i = 0; i < LONGEST_NUMBER; i++) {
      if (place < keptAt || place >= keptAt + kept.length) {
        keep();
      }
      byte next = kept[(int) (place++ - keptAt)];
      value |= (long) (next & 0x7F) << 7 * i;
      if (next >= 0) {
        return value;
      }
    }
    throw damaged(value);
  }

  /** Reads the bytes at the place, whatever is read next. */
  private void keep() throws IOException {
    long next = tell();
    byte[] found = new byte[1 << 10];
    seek(place);
    int count = super.read(found, 0, found.length);
    seek(next);
    if (count <= 0) {
      throw damaged(place);
    }
    kept = Arrays.copyOf(found, count);
    keptAt = place;
  }

  private IOException damaged(long stated) {
    return new IOException(
        "Avro file " + path + " states a length of " + stated + " before byte " + place
            + ", which it cannot have"
            + "\n  hint: Restore the file from a backup, or read an older snapshot.");
  }

  @Override
  public int read(byte[] target, int start, int most) throws IOException {
    long position = tell();
    int count = super.read(target, start, most);
    if (count > 0 && count <= MOST_KEPT) {
      kept = Arrays.copyOfRange(target, start, start + count);
      keptAt = position;
    }
    return count;
  }
}
