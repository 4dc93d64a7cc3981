package org.icecomb.spark.write;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** The files created by a task, all of which are deleted if it is aborted. */
final class CreatedFiles {

  /** A file with its configuration: a broadcast may be gone when a task is aborted. */
  private record Created(Path path, Configuration conf) {}

  private final List<Created> files = new ArrayList<>();

  void add(Path path, Configuration conf) {
    files.add(new Created(path, conf));
  }

  int size() {
    return files.size();
  }

  /**
   * Deletes all files even if some fail. A killed task is interrupted, and Hadoop's calls fail in
   * an interrupted thread, so the interrupt is cleared while files are deleted, and restored
   * afterwards.
   */
  void delete() throws IOException {
    boolean interrupted = Thread.interrupted();
    IOException failure = null;
    for (Created file : files) {
      try {
        file.path().getFileSystem(file.conf()).delete(file.path(), false);
      } catch (IOException e) {
        if (failure == null) {
          failure = e;
        } else {
          failure.addSuppressed(e);
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    if (failure != null) {
      throw failure;
    }
  }
}
