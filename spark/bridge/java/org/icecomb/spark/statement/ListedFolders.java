package org.icecomb.spark.statement;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.util.SerializableConfiguration;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.TaskUser;
import org.icecomb.spark.planner.Protocol.SessionListing;

/**
 * Files in folders, listed by executors, without those that the planner knows: these are sent as an
 * eight-byte hash per path, and a collision only makes an unknown file look known.
 */
final class ListedFolders {

  private static final int TASKS = 10_000;
  private static final long SEED = 42;

  private ListedFolders() {}

  /** The entries of a listing, as JSON objects, see {@code SessionListing}. */
  static Iterator<String> of(SparkSession spark, PlannerSession planner, SessionListing listing)
      throws IOException {
    JavaSparkContext context = JavaSparkContext.fromSparkContext(spark.sparkContext());
    TaskUser user = TaskUser.current();
    TaskUser.check(user);
    Lister lister =
        new Lister(
            context.broadcast(new SerializableConfiguration(planner.hadoop())),
            context.broadcast(known(listing.known())),
            user,
            listing.deep(),
            listing.hiddenFolders(),
            listing.hiddenFiles(),
            listing.always());
    List<Folder> folders =
        listing.folders().stream().map(each -> new Folder(each.location(), each.path())).toList();
    return context
        .parallelize(folders, Math.max(1, Math.min(folders.size(), TASKS)))
        .mapPartitions(lister::list)
        .toLocalIterator();
  }

  private static long[] known(String file) throws IOException {
    try (Stream<String> lines = Files.lines(java.nio.file.Path.of(file))) {
      long[] found = lines.mapToLong(ListedFolders::number).toArray();
      Arrays.sort(found);
      return found;
    }
  }

  private static long number(String path) {
    byte[] bytes = path.getBytes(StandardCharsets.UTF_8);
    return XXH64.hashUnsafeBytes(bytes, Platform.BYTE_ARRAY_OFFSET, bytes.length, SEED);
  }

  private record Folder(String location, String path) implements Serializable {

    Folder below(String name) {
      return new Folder(location + "/" + name, path + "/" + name);
    }
  }

  private record Lister(
      Broadcast<SerializableConfiguration> hadoop,
      Broadcast<long[]> known,
      TaskUser user,
      boolean deep,
      String hiddenFolders,
      String hiddenFiles,
      String always)
      implements Serializable {

    Iterator<String> list(Iterator<Folder> given) {
      return new Entries(this, given);
    }

    <T> T run(TaskUser.Work<T> work) throws IOException {
      return user == null || user.isCurrent() ? work.run() : user.run(work);
    }
  }

  /** One folder is open at a time. */
  private static final class Entries implements Iterator<String> {

    private final ObjectMapper json = new ObjectMapper();
    private final Lister lister;
    private final Pattern hiddenFolders;
    private final Pattern hiddenFiles;
    private final Pattern always;
    private final Iterator<Folder> given;
    private final Deque<Folder> below = new ArrayDeque<>();
    private Folder folder;
    private FileSystem files;
    private RemoteIterator<FileStatus> open;
    private String next;

    Entries(Lister lister, Iterator<Folder> given) {
      this.lister = lister;
      this.hiddenFolders = Pattern.compile(lister.hiddenFolders());
      this.hiddenFiles = Pattern.compile(lister.hiddenFiles());
      this.always = Pattern.compile(lister.always());
      this.given = given;
    }

    @Override
    public boolean hasNext() {
      try {
        while (next == null && (open != null || !below.isEmpty() || given.hasNext())) {
          lister.run(
              () -> {
                step();
                return null;
              });
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return next != null;
    }

    @Override
    public String next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      String found = next;
      next = null;
      return found;
    }

    private void step() throws IOException {
      try {
        if (open == null) {
          boolean isGiven = below.isEmpty();
          folder = isGiven ? given.next() : below.pop();
          Path path = new Path(folder.location());
          files = path.getFileSystem(lister.hadoop().value().value());
          if (isGiven && files instanceof LocalFileSystem && !files.exists(path)) {
            throw new IOException(folder.location() + " is not on the host of an executor");
          }
          open = files.listStatusIterator(path);
        }
        while (open.hasNext()) {
          next = told(open.next());
          if (next != null) {
            return;
          }
        }
        open = null;
      } catch (FileNotFoundException e) {
        // deleted since it was found: it is empty
        open = null;
      }
    }

    /** The JSON of an entry; null if it is not reported. */
    private String told(FileStatus found) throws IOException {
      String name = found.getPath().getName();
      if (found.isDirectory()) {
        if (isLink(found)) {
          return null;
        }
        boolean isHidden = hiddenFolders.matcher(name).matches();
        if (lister.deep() && !isHidden) {
          below.push(folder.below(name));
          return null;
        }
        return row(name, found, true);
      }
      if (hiddenFiles.matcher(name).matches()) {
        return null;
      }
      boolean isKnown =
          Arrays.binarySearch(lister.known().value(), number(folder.below(name).path())) >= 0;
      return isKnown && !always.matcher(name).matches() ? null : row(name, found, false);
    }

    /** Whether a local folder is a symbolic link, which Hadoop does not report. */
    private boolean isLink(FileStatus found) {
      return files instanceof LocalFileSystem
          && Files.isSymbolicLink(java.nio.file.Path.of(found.getPath().toUri().getPath()));
    }

    private String row(String name, FileStatus found, boolean isFolder) throws IOException {
      ObjectNode row = json.createObjectNode();
      row.put("folder", folder.location());
      row.put("name", name);
      row.put("mtime_ms", found.getModificationTime());
      row.put("is_folder", isFolder);
      return json.writeValueAsString(row);
    }
  }
}
