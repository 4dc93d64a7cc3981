package org.icecomb.spark.write;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A writer that hands on to another one what its subclass does not do itself. */
class ForwardingWriter implements DataWriter<InternalRow> {

  private final DataWriter<InternalRow> writer;

  ForwardingWriter(DataWriter<InternalRow> writer) {
    this.writer = writer;
  }

  @Override
  public void write(InternalRow row) throws IOException {
    writer.write(row);
  }

  @Override
  public WriterCommitMessage commit() throws IOException {
    return writer.commit();
  }

  @Override
  public void abort() throws IOException {
    writer.abort();
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
