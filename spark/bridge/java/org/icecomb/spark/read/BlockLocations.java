package org.icecomb.spark.read;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BlockLocation;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The hosts of files. A file system is asked once for each file, for several files at a time; a
 * failure is logged, and the file is then read from any host.
 */
final class BlockLocations {

  private static final Logger LOG = LoggerFactory.getLogger(BlockLocations.class);
  private static final BlockLocation[] UNKNOWN = {};
  private static final int AT_ONCE = 8;
  private static final int MOST_HOSTS = 3;

  private final Map<String, BlockLocation[]> known = new HashMap<>();

  /** Looks up all files of these parts that were not looked up before. */
  synchronized void learn(Stream<FileTask> parts, Configuration hadoop) {
    Map<String, long[]> wanted = new HashMap<>();
    parts
        .filter(part -> !known.containsKey(part.path()))
        .forEach(
            part ->
                wanted.merge(
                    part.path(),
                    new long[] {part.start(), part.start() + part.length()},
                    (a, b) -> new long[] {Math.min(a[0], b[0]), Math.max(a[1], b[1])}));
    if (wanted.isEmpty()) {
      return;
    }
    ExecutorService asking = Executors.newFixedThreadPool(Math.min(AT_ONCE, wanted.size()));
    try {
      Map<String, Future<BlockLocation[]>> asked = new HashMap<>();
      for (Map.Entry<String, long[]> file : wanted.entrySet()) {
        Path path = new Path(file.getKey());
        long start = file.getValue()[0];
        long length = file.getValue()[1] - start;
        FileSystem files = fileSystem(path, hadoop);
        if (files != null) {
          asked.put(
              file.getKey(), asking.submit(() -> files.getFileBlockLocations(path, start, length)));
        }
        known.put(file.getKey(), UNKNOWN);
      }
      asked.forEach((path, answer) -> known.put(path, answer(path, answer)));
    } finally {
      asking.shutdownNow();
    }
  }

  /** Opened by the thread that requests the plan, which acts for the user. */
  private static FileSystem fileSystem(Path path, Configuration hadoop) {
    try {
      return path.getFileSystem(hadoop);
    } catch (IOException e) {
      LOG.warn("No locations for {}", path, e);
      return null;
    }
  }

  private static BlockLocation[] answer(String path, Future<BlockLocation[]> answer) {
    try {
      BlockLocation[] found = answer.get();
      return found == null ? UNKNOWN : found;
    } catch (ExecutionException e) {
      LOG.warn("No locations for {}", path, e.getCause());
      return UNKNOWN;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return UNKNOWN;
    }
  }

  /** The hosts that store most of a task's bytes, in descending order. */
  synchronized String[] hosts(List<FileTask> files) {
    Map<String, Long> bytes = new HashMap<>();
    for (FileTask file : files) {
      for (BlockLocation block : known.getOrDefault(file.path(), UNKNOWN)) {
        long end = Math.min(file.start() + file.length(), block.getOffset() + block.getLength());
        long shared = end - Math.max(file.start(), block.getOffset());
        for (String host : shared > 0 ? hosts(block) : List.<String>of()) {
          bytes.merge(host, shared, Long::sum);
        }
      }
    }
    List<String> found = new ArrayList<>(bytes.keySet());
    found.sort(Comparator.comparing((String host) -> -bytes.get(host)).thenComparing(host -> host));
    return found.stream().limit(MOST_HOSTS).toArray(String[]::new);
  }

  private static List<String> hosts(BlockLocation block) {
    try {
      return List.of(block.getHosts());
    } catch (IOException e) {
      LOG.warn("No hosts of {}", block, e);
      return List.of();
    }
  }
}
