package org.icecomb.spark.write;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.util.SerializableConfiguration;

/**
 * The factory of an append's writers on the executors.
 *
 * @param moved the lineage of rows of other files; null if none is written
 */
record DataFileWriterFactory(
    Broadcast<SerializableConfiguration> hadoop, WriteSettings settings, MovedRows moved)
    implements DataWriterFactory {

  @Override
  public DataWriter<InternalRow> createWriter(int partitionId, long taskId) {
    return new TaskWriter(this, filePrefix(partitionId, taskId));
  }

  /** The prefix of the names of a task's files. */
  String filePrefix(int partitionId, long taskId) {
    return String.format(Locale.ROOT, "%05d-%d-%s", partitionId, taskId, settings.operationId());
  }

  /**
   * A writer of the rows of one task into files by partition.
   *
   * <p>Without fan-out the rows are sorted by partition and one file is open at a time; if a
   * partition occurs again, it gets another file.
   */
  private static final class TaskWriter
      implements DataWriter<InternalRow>, MovedRows.Writer {

    private final DataFileWriterFactory factory;
    private final WriteSettings settings;
    private final String filePrefix;
    private final MovedRows.View moved;
    private final Map<PartitionKey, DataFileWriter> open = new HashMap<>();
    private final List<WrittenFiles.DataFile> finished = new ArrayList<>();
    private final CreatedFiles created = new CreatedFiles();
    private PartitionKey currentKey;
    private DataFileWriter current;

    TaskWriter(DataFileWriterFactory factory, String filePrefix) {
      this.factory = factory;
      this.settings = factory.settings();
      this.filePrefix = filePrefix;
      this.moved = factory.moved() == null ? null : new MovedRows.View(factory.moved());
    }

    @Override
    public void write(InternalRow row) throws IOException {
      write(null, row);
    }

    /** Called by Spark 4.0 and later. */
    @Override
    public void write(InternalRow metadata, InternalRow row) throws IOException {
      append(moved == null ? row : moved.of(metadata, row));
    }

    private void append(InternalRow row) throws IOException {
      PartitionKey key = PartitionKey.of(settings.partition(), row);
      if (!key.equals(currentKey)) {
        turnTo(key);
      }
      current.write(row);
      if (current.isFull()) {
        finish(currentKey);
        currentKey = null;
      }
    }

    /** Switches to the partition of a row; its key is copied only if it is kept. */
    private void turnTo(PartitionKey ofRow) throws IOException {
      if (currentKey != null && !settings.fanout()) {
        finish(currentKey);
      }
      current = open.get(ofRow);
      if (current == null) {
        PartitionKey key = ofRow.copy();
        FileSettings files = settings.files();
        String name =
            String.format(
                Locale.ROOT, "%s-%05d%s", filePrefix, created.size() + 1, files.suffix());
        String location = settings.locationOf(key.toPath(settings.partition()), name);
        Path path = new Path(location);
        Configuration conf = factory.hadoop().value().value();
        created.add(path, conf);
        current = new DataFileWriter(conf, files, path, location, key);
        open.put(key, current);
      }
      currentKey = current.key();
    }

    private void finish(PartitionKey key) throws IOException {
      finished.add(open.remove(key).finish());
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      for (PartitionKey key : new ArrayList<>(open.keySet())) {
        finish(key);
      }
      return new WrittenFiles(new ArrayList<>(finished), List.of());
    }

    /** Deletes all files, finished or not. */
    @Override
    public void abort() throws IOException {
      for (DataFileWriter writer : open.values()) {
        writer.abandon();
      }
      open.clear();
      created.delete();
    }

    @Override
    public void close() {}
  }
}
