package org.icecomb.spark.read;

import java.io.Closeable;
import java.io.IOException;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.HadoopReadOptions;
import org.apache.parquet.ParquetReadOptions;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.SeekableInputStream;
import org.apache.spark.sql.execution.datasources.parquet.VectorizedParquetRecordReader;
import scala.Option;

/** A part of a Parquet file, opened and its footer read once for icecomb and Spark's reader. */
final class ParquetFile implements Closeable {

  /** Whether Spark's reader tells where a struct is null of which the file has no field to read. */
  static final boolean TELLS_NULL_STRUCTS = true;

  private final HadoopInputFile file;
  private final SeekableInputStream stream;
  private final ParquetMetadata footer;

  private ParquetFile(HadoopInputFile file, SeekableInputStream stream, ParquetMetadata footer) {
    this.file = file;
    this.stream = stream;
    this.footer = footer;
  }

  static ParquetFile open(FileSplit part, TaskAttemptContext context) throws IOException {
    HadoopInputFile file = HadoopInputFile.fromPath(part.getPath(), context.getConfiguration());
    ParquetReadOptions options =
        HadoopReadOptions.builder(context.getConfiguration(), part.getPath())
            .withRange(part.getStart(), part.getStart() + part.getLength())
            .build();
    SeekableInputStream stream = file.newStream();
    try {
      return new ParquetFile(file, stream, ParquetFileReader.readFooter(file, options, stream));
    } catch (IOException | RuntimeException e) {
      stream.close();
      throw e;
    }
  }

  /** The footer with the row groups of the part. */
  ParquetMetadata footer() {
    return footer;
  }

  /** Starts a reader with the context's current settings; it closes the file. */
  void begin(
      VectorizedParquetRecordReader reader, FileSplit part, TaskAttemptContext context)
      throws IOException, InterruptedException {
    reader.initialize(part, context, Option.apply(file), Option.apply(stream), Option.apply(footer));
  }

  /** To be called if no reader was started. */
  @Override
  public void close() throws IOException {
    stream.close();
  }
}
