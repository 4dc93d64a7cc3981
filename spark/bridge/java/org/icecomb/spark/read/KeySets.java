package org.icecomb.spark.read;

import java.io.IOException;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** The key sets that an executor has read, kept for its other tasks within bounds. */
final class KeySets {

  /** How many keys are kept at most, beside the set that was asked for last: some 200 MB of text. */
  private static final long CAPACITY = 2_000_000;

  private static final Map<Key, KeySets> KEPT = new LinkedHashMap<>(16, 0.75f, true);

  private volatile KeySet keys;

  /** Files never change, but a column may have another type in the next query. */
  private record Key(EqualityDeletes deletes, String mapping) {}

  private KeySets() {}

  static KeySet of(ColumnarReaderFactory factory, EqualityDeletes deletes) throws IOException {
    KeySets entry;
    synchronized (KEPT) {
      entry = KEPT.computeIfAbsent(new Key(deletes, factory.mapping()), key -> new KeySets());
    }
    KeySet found;
    synchronized (entry) {
      if (entry.keys == null) {
        entry.keys = KeySet.read(factory, deletes);
      }
      found = entry.keys;
    }
    shrink(entry);
    return found;
  }

  /** Lets go of those that were asked for longest ago; one that is being read counts nothing yet. */
  private static void shrink(KeySets last) {
    synchronized (KEPT) {
      long total = 0;
      for (KeySets entry : KEPT.values()) {
        total += entry.size();
      }
      Iterator<KeySets> oldest = KEPT.values().iterator();
      while (total > CAPACITY && oldest.hasNext()) {
        KeySets entry = oldest.next();
        if (entry != last) {
          total -= entry.size();
          oldest.remove();
        }
      }
    }
  }

  private long size() {
    KeySet known = keys;
    return known == null ? 0 : known.size() + 1;
  }
}
