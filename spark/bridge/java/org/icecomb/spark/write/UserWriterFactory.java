package org.icecomb.spark.write;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.icecomb.spark.TaskUser;

/** Writers that create files on behalf of the statement's user. */
record UserWriterFactory(TaskUser user, DataWriterFactory writers) implements DataWriterFactory {

  /** The writers themselves if tasks run as that user anyway. */
  static DataWriterFactory of(TaskUser user, DataWriterFactory writers) {
    TaskUser.check(user);
    return user == null ? writers : new UserWriterFactory(user, writers);
  }

  @Override
  public DataWriter<InternalRow> createWriter(int partitionId, long taskId) {
    DataWriter<InternalRow> writer = writers.createWriter(partitionId, taskId);
    return user.isCurrent() ? writer : new Writer(user, writer);
  }

  /** A writer that acts on behalf of a user. */
  static class Writer extends ForwardingWriter {

    private final TaskUser user;

    Writer(TaskUser user, DataWriter<InternalRow> writer) {
      super(writer);
      this.user = user;
    }

    /** Work without a result. */
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
      run(() -> super.write(row));
    }

    @Override
    public void write(InternalRow metadata, InternalRow row) throws IOException {
      run(() -> super.write(metadata, row));
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      return user.run(super::commit);
    }

    @Override
    public void abort() throws IOException {
      run(super::abort);
    }
  }
}
