package org.icecomb.spark.read;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.IOException;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.parquet.bytes.BytesUtils;
import org.apache.parquet.format.FileMetaData;
import org.apache.parquet.format.SchemaElement;
import org.apache.parquet.format.Util;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.format.converter.ParquetMetadataConverter.MetadataFilter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetFileWriter;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.io.SeekableInputStream;
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
    MetadataFilter groups =
        ParquetMetadataConverter.range(part.getStart(), part.getStart() + part.getLength());
    try {
      return new ParquetFile(
          ParquetFileReader.readFooter(context.getConfiguration(), part.getPath(), groups));
    } catch (NullPointerException e) {
      return new ParquetFile(readKnown(part, context, groups));
    }
  }

  /**
   * Reads a footer without annotations that this Parquet does not know, such as that of variants,
   * for which it has no error.
   */
  private static ParquetMetadata readKnown(
      FileSplit part, TaskAttemptContext context, MetadataFilter groups) throws IOException {
    HadoopInputFile file = HadoopInputFile.fromPath(part.getPath(), context.getConfiguration());
    FileMetaData footer;
    try (SeekableInputStream stream = file.newStream()) {
      long end = file.getLength() - Integer.BYTES - ParquetFileWriter.MAGIC.length;
      stream.seek(end);
      stream.seek(end - BytesUtils.readIntLittleEndian(stream));
      footer = Util.readFileMetaData(stream);
    }
    for (SchemaElement element : footer.getSchema()) {
      if (element.isSetLogicalType() && element.getLogicalType().getSetField() == null) {
        element.unsetLogicalType();
      }
    }
    ByteArrayOutputStream known = new ByteArrayOutputStream();
    Util.writeFileMetaData(footer, known);
    return new ParquetMetadataConverter()
        .readParquetMetadata(new ByteArrayInputStream(known.toByteArray()), groups);
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
