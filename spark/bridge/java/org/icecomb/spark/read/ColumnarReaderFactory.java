package org.icecomb.spark.read;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.rdd.InputFileBlockHolder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.planner.Protocol.DeleteFile;

/**
 * The factory of a scan's readers on the executors.
 *
 * @param vectorized whether Spark reads columnar batches; else rows
 * @param output the requested data and metadata columns, in Spark's order
 * @param columns the data columns among them, with ids
 * @param lineage the columns of row lineage among them, with ids
 * @param mapping the table's name mapping as JSON, or null
 */
record ColumnarReaderFactory(
    Broadcast<SerializableConfiguration> hadoop,
    ReadSettings settings,
    boolean vectorized,
    StructType output,
    StructType columns,
    StructType lineage,
    List<Condition> conditions,
    String mapping)
    implements PartitionReaderFactory {

  /** All partitions of a scan must give the same answer. */
  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return vectorized;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return new RowReader(createColumnarReader(partition));
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    return new FilesReader(this, ((FileTask.Group) partition).files().iterator());
  }

  /** Opens a whole delete file. */
  FormatReader openDeletes(DeleteFile file, StructType columns, NameMapping names)
      throws IOException {
    try {
      return FormatReader.open(
          new FileRequest(
              configuration(),
              settings,
              file.format(),
              new Path(file.path()),
              0,
              FileRequest.TO_THE_END,
              file.rows(),
              columns,
              false,
              null,
              List.of(),
              names));
    } catch (UnsupportedOperationException e) {
      throw new UnsupportedOperationException(
          "Cannot read the delete file " + file.path() + ": " + e.getMessage(), e);
    } catch (FileNotFoundException e) {
      throw new IOException("A delete file of the table is missing: " + file.path(), e);
    }
  }

  /** The table's name mapping, or null. */
  NameMapping nameMapping() {
    return mapping == null ? null : NameMapping.parse(mapping);
  }

  Configuration configuration() {
    return hadoop.value().value();
  }

  /** A reader of the rows of batches one by one. */
  private static final class RowReader implements PartitionReader<InternalRow> {

    private final PartitionReader<ColumnarBatch> batches;
    private Iterator<InternalRow> rows = Collections.emptyIterator();
    private InternalRow row;

    RowReader(PartitionReader<ColumnarBatch> batches) {
      this.batches = batches;
    }

    @Override
    public boolean next() throws IOException {
      while (!rows.hasNext()) {
        if (!batches.next()) {
          return false;
        }
        rows = batches.get().rowIterator();
      }
      row = rows.next();
      return true;
    }

    @Override
    public InternalRow get() {
      return row;
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return batches.currentMetricsValues();
    }

    @Override
    public void close() throws IOException {
      batches.close();
    }
  }

  /** A reader of one file after the other. */
  private static final class FilesReader implements PartitionReader<ColumnarBatch> {

    private final ColumnarReaderFactory factory;
    private final Iterator<FileTask> files;
    private DataFileReader current;
    private long splits;
    private long deletes;

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
        splits++;
      }
    }

    @Override
    public ColumnarBatch get() {
      return current.batch();
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return ScanMetrics.of(splits, deletes + (current == null ? 0 : current.deletesApplied()));
    }

    @Override
    public void close() throws IOException {
      if (current != null) {
        DataFileReader finished = current;
        current = null;
        deletes += finished.deletesApplied();
        InputFileBlockHolder.unset();
        finished.close();
      }
    }
  }
}
