package org.icecomb.spark.write;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ParquetProperties.WriterVersion;
import org.apache.parquet.hadoop.ParquetFileWriter.Mode;
import org.apache.parquet.hadoop.ParquetWriter;
import org.apache.parquet.hadoop.api.WriteSupport;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.CompressionCodecName;
import org.apache.spark.sql.catalyst.InternalRow;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.WrittenFile;

/** Writes one Parquet file of a table, and says what is in it when it is finished. */
final class DataFileWriter {

  private static final int ROWS_BETWEEN_SIZE_CHECKS = 1_000;

  private final WriteSettings settings;
  private final PlainOutputFile file;
  private final String location;
  private final PartitionKey key;
  private final ParquetWriter<InternalRow> writer;
  private long rows;

  /**
   * @param location the path as the table's metadata will have it
   */
  DataFileWriter(
      Configuration conf, WriteSettings settings, Path path, String location, PartitionKey key)
      throws IOException {
    this.settings = settings;
    this.file = new PlainOutputFile(path, conf);
    this.location = location;
    this.key = key;
    this.writer = new Builder(file, settings).withConf(conf).with(settings.parquet()).build();
  }

  void write(InternalRow row) throws IOException {
    writer.write(row);
    rows++;
  }

  boolean isFull() {
    return rows % ROWS_BETWEEN_SIZE_CHECKS == 0 && writer.getDataSize() >= settings.targetBytes();
  }

  WrittenFiles.DataFile finish() throws IOException {
    return new WrittenFiles.DataFile(location, Json.text(Json.of(finished())));
  }

  /** Finishes the file; what the planner is to be told of it. */
  WrittenFile finished() throws IOException {
    writer.close();
    List<BlockMetaData> groups = writer.getFooter().getBlocks();
    return new WrittenFile(
        location,
        file.length(),
        rows,
        key.toJson(),
        groups.stream().map(BlockMetaData::getStartingPos).toList(),
        ColumnMetrics.toJson(groups, settings.metrics()));
  }

  /** Closes what is open; the caller deletes the file. */
  void abandon() {
    try {
      writer.close();
    } catch (IOException | RuntimeException e) {
      // The write has failed already, and that error is the one to report.
    }
  }

  /** Parquet's writer takes settings by methods only, so their usual names are read here. */
  private static final class Builder extends ParquetWriter.Builder<InternalRow, Builder> {

    private final WriteSettings settings;

    Builder(PlainOutputFile file, WriteSettings settings) {
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
        case "parquet.enable.dictionary" -> withDictionaryEncoding(Boolean.parseBoolean(value));
        case "parquet.writer.version" -> withWriterVersion(WriterVersion.fromString(value));
        default -> {
          String bloom = "parquet.bloom.filter.enabled#";
          if (name.startsWith(bloom)) {
            withBloomFilterEnabled(name.substring(bloom.length()), Boolean.parseBoolean(value));
          }
        }
      }
    }

    @Override
    protected Builder self() {
      return this;
    }

    @Override
    protected WriteSupport<InternalRow> getWriteSupport(Configuration conf) {
      return new IdWriteSupport(settings.schema(), settings.footer());
    }
  }
}
