package org.icecomb.spark.write;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;

/** The files that a task began, all of which go when it is aborted. */
final class CreatedFiles {

  /** With what each was begun: a broadcast may be gone when a task is aborted. */
  private record Created(Path path, Configuration conf) {}

  private final List<Created> files = new ArrayList<>();

  void add(Path path, Configuration conf) {
    files.add(new Created(path, conf));
  }

  int size() {
    return files.size();
  }

  /**
   * Deletes all of them, whatever becomes of each. A task that is killed is interrupted, and
   * Hadoop's calls give up in a thread that is: it is not while they are deleted, and is again
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
