package org.icecomb.spark.read;

import java.io.IOException;
import org.apache.spark.memory.SparkOutOfMemoryError;
import org.apache.spark.sql.vectorized.ColumnVector;

/**
 * A reader whose file may state more than any memory or stack holds: Spark's readers take as much as
 * a page or a stripe says, and follow types to any depth. That is an error of this file then; as an
 * {@code OutOfMemoryError} or {@code StackOverflowError} it would end the executor, or a local
 * application.
 */
record ContainedReader(FormatReader reader, FileRequest request) implements FormatReader {

  static IOException error(FileRequest request, VirtualMachineError error) {
    if (error instanceof SparkOutOfMemoryError) {
      throw error;
    }
    IOException found =
        new IOException(
            error instanceof StackOverflowError
                ? "The columns of " + request.path() + " are nested more deeply than any stack allows"
                    + "\n  hint: Restore the file if it is damaged; else write it again, less nested."
                : "There is no memory for what " + request.path() + " states ("
                    + error.getMessage() + ")"
                    + "\n  hint: Restore the file if it is damaged; else give Spark more memory.");
    // Spark looks for fatal errors in causes, too
    found.setStackTrace(error.getStackTrace());
    return found;
  }

  @Override
  public boolean next() throws IOException {
    try {
      return reader.next();
    } catch (OutOfMemoryError | StackOverflowError e) {
      throw error(request, e);
    } catch (RuntimeException e) {
      // of a vector that has no room for the items of lists, or texts
      if (e.getCause() instanceof OutOfMemoryError cause) {
        throw error(request, cause);
      }
      throw e;
    }
  }

  @Override
  public int rows() {
    return reader.rows();
  }

  @Override
  public ColumnVector column(int place) {
    return reader.column(place);
  }

  @Override
  public ColumnVector positions() {
    return reader.positions();
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }
}
