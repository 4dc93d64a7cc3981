package org.icecomb.spark.read;

import java.io.IOException;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;
import org.icecomb.spark.convert.Condition;

/**
 * Makes the readers of a scan on the executors.
 *
 * @param output what Spark asked for, data and metadata columns in its order
 * @param columns the data columns among them, with ids
 * @param mapping the table's name mapping as JSON, or null
 */
record ColumnarReaderFactory(
    Broadcast<SerializableConfiguration> hadoop,
    ReadSettings settings,
    StructType output,
    StructType columns,
    List<Condition> conditions,
    String mapping)
    implements PartitionReaderFactory {

  /** All partitions of a scan must answer alike. */
  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("icecomb reads columnar batches only");
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new FilesReader(this, ((FileTask.Group) partition).files().iterator());
  }

  /** The table's name mapping, or null. */
  NameMapping nameMapping() {
    return mapping == null ? null : NameMapping.parse(mapping);
  }

  Configuration configuration() {
    return hadoop.value().value();
  }

  /** Reads one file after the other. */
  private static final class FilesReader implements PartitionReader<ColumnarBatch> {

    private final ColumnarReaderFactory factory;
    private final Iterator<FileTask> files;
    private DataFileReader current;

    FilesReader(ColumnarReaderFactory factory, Iterator<FileTask> files) {
      this.factory = factory;
      this.files = files;
    }

    @Override
    public boolean next() throws IOException {
      while (true) {
        if (current != null && current.next()) {
          return true;
        }
        close();
        if (!files.hasNext()) {
          return false;
        }
        FileTask file = files.next();
        InputFileBlockHolder.set(file.path(), file.start(), file.length());
        current = DataFileReader.open(factory, file);
      }
    }

    @Override
    public ColumnarBatch get() {
      return current.batch();
    }

    @Override
    public void close() throws IOException {
      if (current != null) {
        DataFileReader finished = current;
        current = null;
        InputFileBlockHolder.unset();
        finished.close();
      }
    }
  }
}
