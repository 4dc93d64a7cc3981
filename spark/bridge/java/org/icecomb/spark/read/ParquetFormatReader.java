package org.icecomb.spark.read;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.icecomb.spark.convert.Schemas;

/** A reader of Parquet, by Spark's own vectorized reader. */
final class ParquetFormatReader implements FormatReader {

  private final LiveRowsReader reader;
  private final StructType columns;
  private final StructType requested;
  private final int[] places;
  private final RowNumbers numbers;
  private final Set<Integer> defaulted;
  private ColumnarBatch batch;
  private ColumnVector[] vectors;

  private ParquetFormatReader(
      LiveRowsReader reader,
      StructType columns,
      StructType requested,
      int[] places,
      RowNumbers numbers,
      Set<Integer> defaulted) {
    this.reader = reader;
    this.columns = columns;
    this.requested = requested;
    this.places = places;
    this.numbers = numbers;
    this.defaulted = defaulted;
  }

  static ParquetFormatReader open(FileRequest request) throws IOException {
    // The context makes a copy, so settings for this file do not affect others.
    TaskAttemptContext context =
        new TaskAttemptContextImpl(
            request.hadoop(), new TaskAttemptID(new TaskID(new JobID(), TaskType.MAP, 0), 0));
    FileSplit part =
        new FileSplit(request.path(), request.start(), request.length(), new String[0]);
    ParquetFile file = ParquetFile.open(part, context);
    try {
      return read(request, part, context, file);
    } catch (IOException | RuntimeException e) {
      file.close();
      throw e;
    }
  }

  private static ParquetFormatReader read(
      FileRequest request, FileSplit part, TaskAttemptContext context, ParquetFile file)
      throws IOException {
    ParquetMetadata footer = file.footer();
    request.checkRows(footer.getBlocks().stream().mapToLong(BlockMetaData::getRowCount).sum());
    Configuration conf = context.getConfiguration();
    FileSchema schema = new FileSchema(footer.getFileMetaData(), request);
    boolean numbered = request.positions() || request.deletes() != null;
    RowNumbers numbers = numbered ? new RowNumbers() : null;

    List<StructField> requested = new ArrayList<>();
    int[] places = new int[request.columns().size()];
    Arrays.fill(places, -1);
    for (int i = 0; i < places.length; i++) {
      StructField physical = schema.physical(request.columns().fields()[i]);
      if (physical != null) {
        places[i] = requested.size();
        requested.add(physical);
      }
    }
    StructType requestedSchema = Schemas.struct(requested);
    if (!schema.defaulted().isEmpty()) {
      // Spark must tell where a struct is null, although the file has no field of it to read.
      conf.setBoolean("spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing", false);
    }
    if (schema.readsNanosAsLongs()) {
      conf.setBoolean("spark.sql.legacy.parquet.nanosAsLong", true);
    }
    String columns = Schemas.setting(requestedSchema);
    conf.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA(), columns);
    conf.set(ParquetWriteSupport.SPARK_ROW_SCHEMA(), columns);

    FileFilters filters = new FileFilters(request.settings(), footer, schema);
    FilterPredicate filter = filters.predicate(request.conditions());
    if (filter != null) {
      ParquetInputFormat.setFilterPredicate(conf, filter);
    }
    PositionDeletes runs = hasOffsetIndex(footer) ? request.deletes() : null;
    LiveRowsReader reader = filters.newReader(runs, filter != null, numbers);
    try {
      reader.begin(file, part, context);
      reader.initBatch(new StructType(), null);
      reader.enableReturningBatches();
    } catch (InterruptedException e) {
      reader.close();
      Thread.currentThread().interrupt();
      throw new IOException(e);
    } catch (IOException | RuntimeException e) {
      reader.close();
      throw e;
    }
    return new ParquetFormatReader(
        reader,
        request.columns(),
        requestedSchema,
        places,
        numbers,
        schema.defaulted());
  }

  /** Row ranges require the offsets of pages, which some writers omit. */
  private static boolean hasOffsetIndex(ParquetMetadata footer) {
    return footer.getBlocks().stream()
        .flatMap(block -> block.getColumns().stream())
        .allMatch(column -> column.getOffsetIndexReference() != null);
  }

  @Override
  public boolean next() throws IOException {
    if (!reader.nextBatch()) {
      return false;
    }
    batch = reader.resultBatch();
    if (vectors == null) {
      vectors = new ColumnVector[places.length];
      for (int i = 0; i < places.length; i++) {
        if (places[i] >= 0) {
          StructField column = columns.fields()[i];
          ColumnVector read = vector(batch.column(places[i]), requested.fields()[places[i]], column);
          vectors[i] = InitialDefaults.inside(read, column.dataType(), defaulted);
        }
      }
    }
    return true;
  }

  private static ColumnVector vector(ColumnVector read, StructField stored, StructField column) {
    return UuidColumnVector.over(
        WidenedColumnVector.over(read, stored.dataType(), column.dataType()), column);
  }

  @Override
  public int rows() {
    return batch.numRows();
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
    reader.close();
  }
}
