package org.icecomb.spark.write;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.OrcConf;
import org.apache.orc.OrcFile;
import org.apache.orc.StripeInformation;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.spark.sql.catalyst.InternalRow;

/** A writer of ORC, by ORC's own vectorized writer, without conversion of timestamps and dates. */
final class OrcFormatWriter implements FormatWriter {

  /** The approximate ratio of size in the file to size in memory. */
  private static final double PACKED = 0.2;

  private final FileSettings settings;
  private final TypeDescription schema;
  private final Writer writer;
  private final VectorizedRowBatch batch;
  private final OrcValue[] columns;

  OrcFormatWriter(PlainOutputFile file, Configuration conf, FileSettings settings)
      throws IOException {
    this.settings = settings;
    this.schema = schema(settings);
    this.batch = schema.createRowBatch(OrcConf.ROW_BATCH_SIZE.getInt(conf));
    batch.reset();
    this.columns = OrcValue.fields(schema, settings.schema());
    // Other readers of Iceberg's files read dates correctly only if the file does not state the
    // calendar by which they were written.
    this.writer =
        OrcFile.createWriter(
            file.path(),
            OrcFile.writerOptions(conf)
                .fileSystem(file.system())
                .overwrite(false)
                .setSchema(schema)
                .useUTCTimestamp(true)
                .setProlepticGregorian(false));
  }

  private static TypeDescription schema(FileSettings settings) {
    TypeDescription schema = TypeDescription.fromString(settings.fileSchema());
    List<Map<String, String>> attributes = settings.attributes();
    for (int i = 0; i < attributes.size(); i++) {
      TypeDescription type = schema.findSubtype(i);
      attributes.get(i).forEach(type::setAttribute);
    }
    return schema;
  }

  @Override
  public void write(InternalRow row) throws IOException {
    int place = batch.size++;
    for (int i = 0; i < columns.length; i++) {
      columns[i].put(batch.cols[i], place, row, i);
    }
    if (batch.size == batch.getMaxSize()) {
      flush();
    }
  }

  private void flush() throws IOException {
    if (batch.size > 0) {
      writer.addRowBatch(batch);
      batch.reset();
    }
  }

  @Override
  public long size() throws IOException {
    List<StripeInformation> stripes = writer.getStripes();
    long written = 0;
    if (!stripes.isEmpty()) {
      StripeInformation last = stripes.get(stripes.size() - 1);
      written = last.getOffset() + last.getLength();
    }
    return written + (long) (writer.estimateMemory() * PACKED);
  }

  @Override
  public Contents finish() throws IOException {
    flush();
    writer.close();
    List<Long> offsets = new ArrayList<>();
    for (StripeInformation stripe : writer.getStripes()) {
      offsets.add(stripe.getOffset());
    }
    return new Contents(
        offsets,
        OrcColumnMetrics.toJson(
            schema, writer.getStatistics(), writer.getNumberOfRows(), settings.metrics()));
  }

  @Override
  public void close() throws IOException {
    writer.close();
  }
}
