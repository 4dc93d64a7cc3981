package org.icecomb.spark.write;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.hadoop.ParquetFileWriter.Mode;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.spark.sql.catalyst.InternalRow;

/** A writer of Parquet, by Spark's own writer. */
final class ParquetFormatWriter implements FormatWriter {

  private final ParquetWriter<InternalRow> writer;
  private final FileSettings settings;

  ParquetFormatWriter(PlainOutputFile file, Configuration conf, FileSettings settings)
      throws IOException {
    this.settings = settings;
    this.writer = new Builder(file, settings).withConf(conf).with(settings.writer()).build();
  }

  @Override
  public void write(InternalRow row) throws IOException {
    writer.write(row);
  }

  @Override
  public long size() {
    return writer.getDataSize();
  }

  @Override
  public Contents finish() throws IOException {
    writer.close();
    List<BlockMetaData> groups = writer.getFooter().getBlocks();
    return new Contents(
        groups.stream().map(BlockMetaData::getStartingPos).toList(),
        ColumnMetrics.toJson(groups, settings.metrics()));
  }

  @Override
  public void close() throws IOException {
    writer.close();
  }

  /** Sets properties by name: Parquet's writer has only methods for them. */
  private static final class Builder extends ParquetWriter.Builder<InternalRow, Builder> {

    private final FileSettings settings;

    Builder(PlainOutputFile file, FileSettings settings) {
      super(file);
      this.settings = settings;
      withWriteMode(Mode.CREATE);
    }

    Builder with(Map<String, String> values) {
      values.forEach(this::set);
      return this;
    }

    private void set(String name, String value) {
      switch (name) {
        case "compression" -> withCompressionCodec(CompressionCodecName.fromConf(value));
        case "parquet.block.size" -> withRowGroupSize(Long.parseLong(value));
        case "parquet.page.size" -> withPageSize(Integer.parseInt(value));
        case "parquet.page.row.count.limit" -> withPageRowCountLimit(Integer.parseInt(value));
        case "parquet.dictionary.page.size" -> withDictionaryPageSize(Integer.parseInt(value));
        case "parquet.writer.version" -> withWriterVersion(WriterVersion.fromString(value));
        case "parquet.page.size.row.check.min" ->
            withMinRowCountForPageSizeCheck(Integer.parseInt(value));
        case "parquet.page.size.row.check.max" ->
            withMaxRowCountForPageSizeCheck(Integer.parseInt(value));
        case "parquet.bloom.filter.max.bytes" ->
            ParquetLimits.maxBloomFilterBytes(this, Integer.parseInt(value));
        case "parquet.bloom.filter.adaptive.enabled" ->
            ParquetLimits.adaptiveBloomFilters(this, Boolean.parseBoolean(value));
        default -> {
          int column = name.indexOf('#');
          if (column >= 0) {
            set(name.substring(0, column), name.substring(column + 1), value);
          }
        }
      }
    }

    private void set(String name, String column, String value) {
      switch (name) {
        case "parquet.bloom.filter.enabled" ->
            withBloomFilterEnabled(column, Boolean.parseBoolean(value));
        case "parquet.bloom.filter.fpp" -> withBloomFilterFPP(column, Double.parseDouble(value));
        case "parquet.bloom.filter.expected.ndv" ->
            withBloomFilterNDV(column, Long.parseLong(value));
        case "parquet.enable.dictionary" ->
            withDictionaryEncoding(column, Boolean.parseBoolean(value));
        case "parquet.column.statistics.enabled" ->
            ParquetLimits.statistics(this, column, Boolean.parseBoolean(value));
        default -> throw new IllegalArgumentException("No setting of Parquet: " + name);
      }
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected WriteSupport<InternalRow> getWriteSupport(Configuration conf) {
      return new IdWriteSupport(settings.schema(), settings.metadata());
    }
  }
}
