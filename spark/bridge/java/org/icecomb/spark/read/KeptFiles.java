package org.icecomb.spark.read;

import java.io.IOException;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.ToLongFunction;

/**
 * What an executor has read of files, kept for its other tasks within bounds. Files never change.
 *
 * @param <K> what was read
 * @param <V> what it holds
 */
final class KeptFiles<K, V> {

  private final Map<K, Entry<V>> kept = new LinkedHashMap<>(16, 0.75f, true);
  private final long capacity;

  /** Reads what is asked for. */
  interface Source<V> {
    V read() throws IOException;
  }

  private static final class Entry<V> {

    private V value;
    /** Of the value; one that is being read counts nothing yet. */
    private volatile long size;
  }

  /**
   * @param capacity the size of all that is kept, what was asked for last aside
   */
  KeptFiles(long capacity) {
    this.capacity = capacity;
  }

  V get(K key, Source<V> source, ToLongFunction<V> size) throws IOException {
    Entry<V> entry;
    synchronized (kept) {
      entry = kept.computeIfAbsent(key, each -> new Entry<>());
    }
    V found;
    synchronized (entry) {
      if (entry.value == null) {
        entry.value = source.read();
        entry.size = 1 + size.applyAsLong(entry.value);
      }
      found = entry.value;
    }
    shrink(entry);
    return found;
  }

  /** Lets go of what was asked for longest ago. */
  private void shrink(Entry<V> last) {
    synchronized (kept) {
      long total = kept.values().stream().mapToLong(entry -> entry.size).sum();
      Iterator<Entry<V>> oldest = kept.values().iterator();
      while (total > capacity && oldest.hasNext()) {
        Entry<V> entry = oldest.next();
        if (entry != last) {
          total -= entry.size;
          oldest.remove();
        }
      }
    }
  }
}
