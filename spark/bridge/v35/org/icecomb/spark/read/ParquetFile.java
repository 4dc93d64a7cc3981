package org.icecomb.spark.read;

import java.io.Closeable;
import java.io.IOException;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import scala.Option;

/** A part of a Parquet file whose footer is read once, for icecomb and for Spark's reader. */
final class ParquetFile implements Closeable {

  /** Whether Spark's reader tells where a struct is null of which the file has no field to read. */
  static final boolean TELLS_NULL_STRUCTS = false;

  private final ParquetMetadata footer;

  private ParquetFile(ParquetMetadata footer) {
    this.footer = footer;
  }

  static ParquetFile open(FileSplit part, TaskAttemptContext context) throws IOException {
    long end = part.getStart() + part.getLength();
    return new ParquetFile(
        ParquetFileReader.readFooter(
            context.getConfiguration(),
            part.getPath(),
            ParquetMetadataConverter.range(part.getStart(), end)));
  }

  /** The footer with the row groups of the part. */
  ParquetMetadata footer() {
    return footer;
  }

  /** Starts a reader with the context's current settings. */
  void begin(
      VectorizedParquetRecordReader reader, FileSplit part, TaskAttemptContext context)
      throws IOException, InterruptedException {
    reader.initialize(part, context, Option.apply(footer));
  }

  /** To be called if no reader was started. */
  @Override
  public void close() {}
}
