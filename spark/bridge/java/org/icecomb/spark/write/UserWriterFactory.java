package org.icecomb.spark.write;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.icecomb.spark.TaskUser;

/** Writers whose files are those of the statement's user. */
record UserWriterFactory(TaskUser user, DataWriterFactory writers) implements DataWriterFactory {

  /** The writers themselves where tasks have that name anyway. */
  static DataWriterFactory of(TaskUser user, DataWriterFactory writers) {
    TaskUser.check(user);
    return user == null ? writers : new UserWriterFactory(user, writers);
  }

  @Override
  public DataWriter<InternalRow> createWriter(int partitionId, long taskId) {
    DataWriter<InternalRow> writer = writers.createWriter(partitionId, taskId);
    try {
      return user.isCurrent() ? writer : new Writer(user, writer);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** A writer in the name of a user. */
  static class Writer implements DataWriter<InternalRow> {

    private final TaskUser user;
    private final DataWriter<InternalRow> writer;

    Writer(TaskUser user, DataWriter<InternalRow> writer) {
      this.user = user;
      this.writer = writer;
    }

    /** Work that has no result. */
    @FunctionalInterface
    interface Step {
      void run() throws IOException;
    }

    final void run(Step step) throws IOException {
      user.run(
          () -> {
            step.run();
            return null;
          });
    }

    @Override
    public void write(InternalRow row) throws IOException {
      run(() -> writer.write(row));
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      return user.run(writer::commit);
    }

    @Override
    public void abort() throws IOException {
      run(writer::abort);
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return writer.currentMetricsValues();
    }

    @Override
    public void close() throws IOException {
      writer.close();
    }
  }
}
