package org.icecomb.spark.read;

import java.io.IOException;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.vectorized.ColumnVector;

/** A reader of ORC's stripes that begin in the range, by ORC's own vectorized reader. */
final class OrcFormatReader implements FormatReader {

  private final Reader file;
  private final RecordReader rows;
  private final VectorizedRowBatch batch;
  private final ColumnVector[] vectors;
  private final RowNumbers numbers;

  private OrcFormatReader(
      Reader file,
      RecordReader rows,
      VectorizedRowBatch batch,
      ColumnVector[] vectors,
      RowNumbers numbers) {
    this.file = file;
    this.rows = rows;
    this.batch = batch;
    this.vectors = vectors;
    this.numbers = numbers;
  }

  static OrcFormatReader open(FileRequest request) throws IOException {
    OrcFile.ReaderOptions options = OrcFile.readerOptions(request.hadoop()).useUTCTimestamp(true);
    Reader file = OrcFile.createReader(request.path(), options);
    try {
      request.checkRows(file.getNumberOfRows());
      // Dates and timestamps are read as stored, as Iceberg's writers mean them, although most of
      // these do not state the calendar in the file.
      options.convertToProlepticGregorian(file.writerUsedProlepticGregorian());
      OrcProjection projection = new OrcProjection(file.getSchema(), request);
      TypeDescription schema = projection.schema();
      VectorizedRowBatch batch = schema.createRowBatch(request.settings().batchRows());
      ColumnVector[] vectors = projection.vectors(batch.cols, () -> batch.size);
      Reader.Options reading =
          file.options()
              .schema(schema)
              .range(request.start(), request.length())
              .isSchemaEvolutionCaseAware(true);
      SearchArgument conditions =
          request.settings().pushDownOrc()
              ? OrcConditions.of(request.conditions(), projection)
              : null;
      if (conditions != null) {
        // Only row groups are left out: single rows would only be marked in the batch.
        reading
            .searchArgument(conditions, schema.getFieldNames().toArray(new String[0]))
            .allowSARGToFilter(false);
      }
      RecordReader rows = file.rows(reading);
      boolean numbered = request.positions() || request.deletes() != null;
      return new OrcFormatReader(file, rows, batch, vectors, numbered ? new RowNumbers() : null);
    } catch (IOException | RuntimeException e) {
      file.close();
      throw e;
    }
  }

  @Override
  public boolean next() throws IOException {
    long first = numbers == null ? 0 : rows.getRowNumber();
    if (!rows.nextBatch(batch) || batch.size == 0) {
      return false;
    }
    if (numbers != null) {
      numbers.set(first, batch.size);
    }
    return true;
  }

  @Override
  public int rows() {
    return batch.size;
  }

  @Override
  public ColumnVector column(int place) {
    return vectors[place];
  }

  @Override
  public ColumnVector positions() {
    return numbers.vector();
  }

  @Override
  public void close() throws IOException {
    rows.close();
    file.close();
  }
}
