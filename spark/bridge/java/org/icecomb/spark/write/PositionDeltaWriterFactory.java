package org.icecomb.spark.write;

import java.io.IOException;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DeltaWriter;
import org.apache.spark.sql.connector.write.DeltaWriterFactory;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.util.SerializableConfiguration;
import org.icecomb.spark.read.ChangedFiles;

/**
 * The factory of a change's writers on the executors.
 *
 * @param rows the factory of writers of new rows
 * @param hadoop the configuration for delete files; null where positions are reported
 * @param byFile whether a delete file applies to one data file; else to all of a partition
 * @param asVectors whether positions are reported instead, for deletion vectors
 * @param fileOrdinal the ordinal of the data file in a row's id
 * @param positionOrdinal the ordinal of the position in it
 */
record PositionDeltaWriterFactory(
    DataFileWriterFactory rows,
    Broadcast<SerializableConfiguration> hadoop,
    WriteSettings deletes,
    boolean byFile,
    boolean asVectors,
    Broadcast<ChangedFiles> files,
    int fileOrdinal,
    int positionOrdinal)
    implements DeltaWriterFactory {

  @Override
  public DeltaWriter<InternalRow> createWriter(int partitionId, long taskId) {
    return new TaskWriter(
        this,
        rows.createWriter(partitionId, taskId),
        new PositionDeleteWriter(this, rows.filePrefix(partitionId, taskId)));
  }

  private record TaskWriter(
      PositionDeltaWriterFactory factory,
      DataWriter<InternalRow> rows,
      PositionDeleteWriter deletes)
      implements DeltaWriter<InternalRow>, MovedRows.Writer {

    @Override
    public void delete(InternalRow metadata, InternalRow id) throws IOException {
      deletes.delete(id.getLong(factory.fileOrdinal()), id.getLong(factory.positionOrdinal()));
    }

    @Override
    public void update(InternalRow metadata, InternalRow id, InternalRow row) {
      throw new UnsupportedOperationException("An updated row is deleted and inserted");
    }

    /** Called by Spark 4.0 and later for the new values of a deleted row. */
    public void reinsert(InternalRow metadata, InternalRow row) throws IOException {
      write(metadata, row);
    }

    @Override
    public void write(InternalRow metadata, InternalRow row) throws IOException {
      ((MovedRows.Writer) rows).write(metadata, row);
    }

    @Override
    public void insert(InternalRow row) throws IOException {
      rows.write(row);
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      WrittenFiles written = (WrittenFiles) rows.commit();
      return new WrittenFiles(written.files(), deletes.finish());
    }

    /** Deletes all files, finished or not. */
    @Override
    public void abort() throws IOException {
      try {
        rows.abort();
      } finally {
        deletes.abort();
      }
    }

    @Override
    public void close() throws IOException {
      rows.close();
    }
  }
}
