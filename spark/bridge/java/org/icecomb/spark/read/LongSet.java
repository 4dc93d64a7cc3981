package org.icecomb.spark.read;

import java.util.function.LongConsumer;

/** A set of integers that does not create an object for each. */
final class LongSet {

  private static final long GOLDEN_RATIO = 0x9E3779B97F4A7C15L;

  private long[] slots = new long[64];
  private int shift = Long.numberOfLeadingZeros(slots.length) + 1;
  private int size;
  private boolean hasZero;

  void add(long number) {
    if (number == 0) {
      hasZero = true;
      return;
    }
    if (size * 2 >= slots.length) {
      grow();
    }
    int slot = slot(number);
    if (slots[slot] == 0) {
      slots[slot] = number;
      size++;
    }
  }

  boolean contains(long number) {
    return number == 0 ? hasZero : slots[slot(number)] == number;
  }

  void forEach(LongConsumer taker) {
    if (hasZero) {
      taker.accept(0);
    }
    for (long number : slots) {
      if (number != 0) {
        taker.accept(number);
      }
    }
  }

  /** The memory it takes. */
  long bytes() {
    return (long) Long.BYTES * slots.length;
  }

  /** The slot that contains the number, or the empty one to put it in. */
  private int slot(long number) {
    int slot = (int) ((number * GOLDEN_RATIO) >>> shift);
    while (slots[slot] != 0 && slots[slot] != number) {
      slot = slot + 1 & slots.length - 1;
    }
    return slot;
  }

  private void grow() {
    long[] before = slots;
    slots = new long[Math.multiplyExact(before.length, 2)];
    shift--;
    for (long number : before) {
      if (number != 0) {
        slots[slot(number)] = number;
      }
    }
  }
}
