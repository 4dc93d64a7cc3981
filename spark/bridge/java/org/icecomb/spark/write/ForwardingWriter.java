package org.icecomb.spark.write;

import java.io.IOException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;

/** A writer that passes calls on to another one, unless its subclass overrides them. */
class ForwardingWriter implements DataWriter<InternalRow>, MovedRows.Writer {

  private final DataWriter<InternalRow> writer;

  ForwardingWriter(DataWriter<InternalRow> writer) {
    this.writer = writer;
  }

  @Override
  public void write(InternalRow row) throws IOException {
    writer.write(row);
  }

  @Override
  public void write(InternalRow metadata, InternalRow row) throws IOException {
    ((MovedRows.Writer) writer).write(metadata, row);
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
