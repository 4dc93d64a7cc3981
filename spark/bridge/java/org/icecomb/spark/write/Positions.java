package org.icecomb.spark.write;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.Deflater;

/** A growing list of positions of rows in a data file. */
final class Positions {

  private long[] values = new long[16];
  private int count;
  private boolean sorted = true;

  void add(long position) {
    if (count == values.length) {
      values = Arrays.copyOf(values, Math.multiplyExact(count, 2));
    }
    sorted = sorted && (count == 0 || values[count - 1] < position);
    values[count++] = position;
  }

  void addAll(long[] positions) {
    for (long position : positions) {
      add(position);
    }
  }

  /** The distinct positions, ascending. */
  long[] sorted() {
    long[] found = Arrays.copyOf(values, count);
    return sorted ? found : Arrays.stream(found).sorted().distinct().toArray();
  }

  /** Encodes ascending positions as the planner does: base64 of zlib of 64-bit differences. */
  static String packed(long[] positions) {
    ByteBuffer differences =
        ByteBuffer.allocate(Math.multiplyExact(positions.length, Long.BYTES))
            .order(ByteOrder.LITTLE_ENDIAN);
    long before = 0;
    for (long position : positions) {
      differences.putLong(position - before);
      before = position;
    }
    Deflater deflater = new Deflater(Deflater.BEST_SPEED);
    try {
      deflater.setInput(differences.array());
      deflater.finish();
      ByteArrayOutputStream packed = new ByteArrayOutputStream();
      byte[] part = new byte[1 << 13];
      while (!deflater.finished()) {
        packed.write(part, 0, deflater.deflate(part));
      }
      return Base64.getEncoder().encodeToString(packed.toByteArray());
    } finally {
      deflater.end();
    }
  }
}
