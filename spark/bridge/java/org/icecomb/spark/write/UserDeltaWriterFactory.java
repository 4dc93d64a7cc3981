package org.icecomb.spark.write;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.icecomb.spark.TaskUser;

/** Writers of changes that create files on behalf of the statement's user. */
record UserDeltaWriterFactory(TaskUser user, DeltaWriterFactory writers)
    implements DeltaWriterFactory {

  /** The writers themselves if tasks run as that user anyway. */
  static DeltaWriterFactory of(TaskUser user, DeltaWriterFactory writers) {
    TaskUser.check(user);
    return user == null ? writers : new UserDeltaWriterFactory(user, writers);
  }

  @Override
  public DeltaWriter<InternalRow> createWriter(int partitionId, long taskId) {
    DeltaWriter<InternalRow> writer = writers.createWriter(partitionId, taskId);
    return user.isCurrent() ? writer : new Writer(user, writer);
  }

  private static final class Writer extends UserWriterFactory.Writer
      implements DeltaWriter<InternalRow> {

    private final DeltaWriter<InternalRow> writer;

    Writer(TaskUser user, DeltaWriter<InternalRow> writer) {
      super(user, writer);
      this.writer = writer;
    }

    @Override
    public void delete(InternalRow metadata, InternalRow id) throws IOException {
      run(() -> writer.delete(metadata, id));
    }

    @Override
    public void update(InternalRow metadata, InternalRow id, InternalRow row) throws IOException {
      run(() -> writer.update(metadata, id, row));
    }

    /** Called by Spark 4.0 and later. */
    public void reinsert(InternalRow metadata, InternalRow row) throws IOException {
      write(metadata, row);
    }

    @Override
    public void insert(InternalRow row) throws IOException {
      run(() -> writer.insert(row));
    }

    @Override
    public void write(InternalRow row) throws IOException {
      insert(row);
    }
  }
}
