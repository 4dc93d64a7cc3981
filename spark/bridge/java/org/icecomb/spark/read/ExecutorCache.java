package org.icecomb.spark.read;

import java.io.IOException;
import java.io.Serializable;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.commons.codec.digest.DigestUtils;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.internal.SQLConf;

/**
 * A bounded cache of delete files read by the tasks of an executor. Files never change.
 */
final class ExecutorCache {

  /** How settings begin that say which store a path means. */
  private static final List<String> STORES = List.of("fs.", "dfs.", "hadoop.", "ha.");

  private static final Map<Object, Entry> KEPT = new LinkedHashMap<>(16, 0.75f, true);

  private ExecutorCache() {}

  /**
   * The limits by Iceberg's settings of a session; the tasks of each query shrink the cache to
   * them.
   *
   * @param maxEntryBytes the size of the largest entry to keep
   * @param maxTotalBytes the size of all entries
   * @param timeoutMs the time after which unused entries are dropped
   * @param stores a digest of the settings of file systems: two stores may have a path each
   */
  record Settings(
      boolean enabled, long maxEntryBytes, long maxTotalBytes, long timeoutMs, String stores)
      implements Serializable {

    private static final String PREFIX = "spark.sql.iceberg.executor-cache.";

    static Settings of(SQLConf conf, Configuration hadoop) {
      return new Settings(
          Boolean.parseBoolean(conf.getConfString(PREFIX + "enabled", "true")),
          Long.parseLong(conf.getConfString(PREFIX + "max-entry-size", "67108864")),
          Long.parseLong(conf.getConfString(PREFIX + "max-total-size", "134217728")),
          1000 * JavaUtils.timeStringAsSec(conf.getConfString(PREFIX + "timeout", "10min")),
          digest(hadoop));
    }

    private static String digest(Configuration hadoop) {
      SortedMap<String, String> found = new TreeMap<>();
      for (Map.Entry<String, String> each : hadoop) {
        if (STORES.stream().anyMatch(each.getKey()::startsWith)) {
          found.put(each.getKey(), each.getValue());
        }
      }
      return DigestUtils.sha256Hex(found.toString());
    }
  }

  /** A source of the value of an entry. */
  interface Source<V> {
    V read() throws IOException;
  }

  /** A value that can be cached. */
  interface Sized {
    /** The approximate memory that it takes. */
    long bytes();
  }

  private static final class Entry {

    private Sized value;
    /** The size of the value; 0 while it is being read. */
    private volatile long bytes;
    private volatile long usedMs;
  }

  /** The value of a file, read if it is not cached; concurrent threads read it once. */
  @SuppressWarnings("unchecked")
  static <V extends Sized> V get(Settings settings, Object file, Source<V> source)
      throws IOException {
    if (!settings.enabled()) {
      return source.read();
    }
    Object key = List.of(settings.stores(), file);
    long now = System.nanoTime() / 1_000_000;
    Entry entry;
    synchronized (KEPT) {
      entry = KEPT.computeIfAbsent(key, each -> new Entry());
      entry.usedMs = now;
    }
    V found;
    synchronized (entry) {
      if (entry.value == null) {
        entry.value = source.read();
        entry.bytes = entry.value.bytes();
      }
      found = (V) entry.value;
    }
    shrink(settings, key, entry, now);
    return found;
  }

  /** Drops entries that are too large, unused for too long, or least recently used. */
  private static void shrink(Settings settings, Object key, Entry last, long now) {
    synchronized (KEPT) {
      if (last.bytes > settings.maxEntryBytes()) {
        KEPT.remove(key, last);
      }
      long total = KEPT.values().stream().mapToLong(entry -> entry.bytes).sum();
      Iterator<Entry> oldest = KEPT.values().iterator();
      while (oldest.hasNext()) {
        Entry entry = oldest.next();
        if (total <= settings.maxTotalBytes() && now - entry.usedMs < settings.timeoutMs()) {
          return;
        }
        total -= entry.bytes;
        oldest.remove();
      }
    }
  }
}
