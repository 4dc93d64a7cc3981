package org.icecomb.spark.read;

import java.io.IOException;
import org.apache.avro.file.DataFileConstants;
import org.apache.avro.file.DataFileReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;

/** A reader of Avro, row by row into vectors, of the blocks whose sync marker is in the range. */
final class AvroFormatReader implements FormatReader {

  private final AvroInput input;
  private final DataFileReader<Void> file;
  private final boolean snappy;
  private final AvroRows rows;
  private final OnHeapColumnVector[] vectors;
  private final boolean[] missing;
  private final RowNumbers numbers;
  private final FileRequest request;
  private final int capacity;
  private long position;
  private long leftInBlock;
  private int count;

  private AvroFormatReader(
      AvroInput input,
      DataFileReader<Void> file,
      AvroRows rows,
      OnHeapColumnVector[] vectors,
      RowNumbers numbers,
      long position,
      FileRequest request) {
    this.input = input;
    this.file = file;
    this.snappy = DataFileConstants.SNAPPY_CODEC.equals(file.getMetaString(DataFileConstants.CODEC));
    this.rows = rows;
    this.vectors = vectors;
    this.missing = rows.missing();
    this.numbers = numbers;
    this.position = position;
    this.request = request;
    this.capacity = request.settings().batchRows();
  }

  static AvroFormatReader open(FileRequest request) throws IOException {
    StructType columns = request.columns();
    OnHeapColumnVector[] vectors = new OnHeapColumnVector[columns.size()];
    for (int i = 0; i < vectors.length; i++) {
      StructField column = columns.fields()[i];
      vectors[i] = new OnHeapColumnVector(request.settings().batchRows(), column.dataType());
    }
    AvroRows rows = new AvroRows(request, vectors);
    AvroInput input = new AvroInput(request);
    try {
      input.checkHeader();
      DataFileReader<Void> file = new DataFileReader<>(input, rows);
      boolean numbered = request.positions() || request.deletes() != null;
      long position = 0;
      if (request.start() > 0) {
        position = numbered ? rowsBefore(request, file.previousSync(), input.length()) : 0;
        file.sync(request.start());
      }
      return new AvroFormatReader(
          input, file, rows, vectors, numbered ? new RowNumbers() : null, position, request);
    } catch (IOException | RuntimeException e) {
      input.close();
      throw e;
    }
  }

  /**
   * The number of rows in the blocks whose sync marker begins before the range.
   *
   * @param first the offset of the first block
   * @param end the end of the last one; a range may begin in its sync marker
   */
  private static long rowsBefore(FileRequest request, long first, long end) throws IOException {
    long rows = 0;
    long block = first;
    try (FSDataInputStream in =
        request.path().getFileSystem(request.hadoop()).open(request.path())) {
      while (block < end && block - DataFileConstants.SYNC_SIZE < request.start()) {
        in.seek(block);
        BinaryDecoder sizes = DecoderFactory.get().directBinaryDecoder(in, null);
        rows += sizes.readLong();
        long size = sizes.readLong();
        if (size < 0) {
          throw new IOException(
              "Avro file " + request.path() + " has a block of " + size + " bytes"
                  + "\n  hint: Restore the file from a backup, or read an older snapshot.");
        }
        block = in.getPos() + size + DataFileConstants.SYNC_SIZE;
      }
    }
    return rows;
  }

  @Override
  public boolean next() throws IOException {
    for (OnHeapColumnVector vector : vectors) {
      vector.reset();
    }
    position += count;
    count = 0;
    long end = request.start() + request.length();
    while (count < capacity && hasNext() && !file.pastSync(end)) {
      file.next(null);
      leftInBlock--;
      count++;
    }
    // rows may take no bytes
    if (count == 0 || request.rows() >= 0 && position + count > request.rows()) {
      request.checkRows(position + count);
    }
    if (count > 0 && numbers != null) {
      numbers.set(position, count);
    }
    return count > 0;
  }

  private boolean hasNext() throws IOException {
    if (leftInBlock == 0) {
      input.checkBlock(file.previousSync(), snappy);
      leftInBlock = file.hasNext() ? file.getBlockCount() : 0;
    }
    return leftInBlock > 0;
  }

  @Override
  public int rows() {
    return count;
  }

  @Override
  public ColumnVector column(int place) {
    return missing[place] ? null : vectors[place];
  }

  @Override
  public ColumnVector positions() {
    return numbers.vector();
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
