package org.icecomb.spark.rows;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.util.List;
import java.util.zip.InflaterInputStream;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** The batches of a compressed Arrow IPC stream. */
final class ArrowStream implements PartitionReader<ColumnarBatch> {

  private final BufferAllocator allocator;
  private final ArrowStreamReader stream;
  private final int columns;
  private ColumnarBatch batch;

  /**
   * @param columns the number of the stream's columns to read, from the first one
   */
  ArrowStream(byte[] compressed, int columns) {
    this.columns = columns;
    allocator =
        ArrowUtils.rootAllocator().newChildAllocator("icecomb rows", 0, Long.MAX_VALUE);
    stream =
        new ArrowStreamReader(
            new InflaterInputStream(new ByteArrayInputStream(compressed)), allocator);
  }

  @Override
  public boolean next() throws IOException {
    if (!stream.loadNextBatch()) {
      return false;
    }
    VectorSchemaRoot root = stream.getVectorSchemaRoot();
    List<FieldVector> vectors = root.getFieldVectors().subList(0, columns);
    batch =
        new ColumnarBatch(
            vectors.stream().map(LentVector::new).toArray(ColumnVector[]::new),
            root.getRowCount());
    return true;
  }

  /** A vector that the stream refills, and which Spark must not close with a batch. */
  private static final class LentVector extends ArrowColumnVector {

    LentVector(FieldVector vector) {
      super(vector);
    }

    @Override
    public void close() {}
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public void close() throws IOException {
    stream.close();
    allocator.close();
  }
}
