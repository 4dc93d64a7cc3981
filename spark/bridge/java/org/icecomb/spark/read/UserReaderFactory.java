package org.icecomb.spark.read;

import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.icecomb.spark.TaskUser;

/** Readers that open files on behalf of the statement's user. */
record UserReaderFactory(TaskUser user, PartitionReaderFactory readers)
    implements PartitionReaderFactory {

  /** The readers themselves if tasks run as that user anyway. */
  static PartitionReaderFactory of(TaskUser user, PartitionReaderFactory readers) {
    TaskUser.check(user);
    return user == null ? readers : new UserReaderFactory(user, readers);
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return readers.supportColumnarReads(partition);
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return reader(() -> readers.createReader(partition));
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return reader(() -> readers.createColumnarReader(partition));
  }

  private <T> PartitionReader<T> reader(TaskUser.Work<PartitionReader<T>> made) {
    try {
      return user.isCurrent() ? made.run() : new Reader<>(user, user.run(made));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private record Reader<T>(TaskUser user, PartitionReader<T> reader) implements PartitionReader<T> {

    @Override
    public boolean next() throws IOException {
      return user.run(reader::next);
    }

    @Override
    public T get() {
      return reader.get();
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return reader.currentMetricsValues();
    }

    @Override
    public void close() throws IOException {
      user.run(
          () -> {
            reader.close();
            return null;
          });
    }
  }
}
