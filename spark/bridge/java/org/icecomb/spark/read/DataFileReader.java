package org.icecomb.spark.read;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapred.FileSplit;
import org.apache.hadoop.mapreduce.JobID;
import org.apache.hadoop.mapreduce.TaskAttemptID;
import org.apache.hadoop.mapreduce.TaskID;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.task.TaskAttemptContextImpl;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.spark.sql.execution.datasources.parquet.ParquetReadSupport;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Schemas;

/** Reads a range of one data file as batches of the columns that a query asks for. */
final class DataFileReader implements Closeable {

  /** A column of this name is filled by Spark's reader with the position of each row. */
  private static final String ROW_INDEX = "_tmp_metadata_row_index";

  private final LiveRowsReader reader;
  private final PositionDeletes lateDeletes;
  private final int positionColumn;
  private final List<Source> sources;
  private ColumnVector[] vectors;
  private ColumnarBatch allRows;
  private ColumnarBatch batch;

  /** Where an output column comes from: a column of Spark's reader, or one value for all rows. */
  private record Source(int column, StructField field, Object constant) {}

  private DataFileReader(
      LiveRowsReader reader, PositionDeletes lateDeletes, int positionColumn, List<Source> sources) {
    this.reader = reader;
    this.lateDeletes = lateDeletes;
    this.positionColumn = positionColumn;
    this.sources = sources;
  }

  static DataFileReader open(ColumnarReaderFactory factory, FileTask task) throws IOException {
    try {
      return openFile(factory, task);
    } catch (UnsupportedOperationException e) {
      throw new UnsupportedOperationException("Cannot read " + task.path() + ": " + e.getMessage(), e);
    } catch (FileNotFoundException e) {
      throw new FileNotFoundException(
          "A data file of the table is missing: " + task.path() + " (" + e.getMessage() + ")");
    }
  }

  private static DataFileReader openFile(ColumnarReaderFactory factory, FileTask task)
      throws IOException {
    Path path = new Path(task.path());
    // The context takes a copy, so what is set for this file is seen by no other.
    TaskAttemptContextImpl context =
        new TaskAttemptContextImpl(
            factory.configuration(),
            new TaskAttemptID(new TaskID(new JobID(), TaskType.MAP, 0), 0));
    Configuration conf = context.getConfiguration();
    ParquetMetadata footer =
        ParquetFileReader.readFooter(
            conf, path, ParquetMetadataConverter.range(task.start(), task.start() + task.length()));
    FileSchema schema =
        new FileSchema(
            footer.getFileMetaData().getSchema(),
            factory.columns(),
            factory.mapping() == null ? null : NameMapping.parse(factory.mapping()),
            task.constants().keySet());
    PositionDeletes deletes = task.deletes() == null ? null : PositionDeletes.unpack(task.deletes());
    boolean late = deletes != null && !hasOffsetIndex(footer);

    List<StructField> requested = new ArrayList<>();
    List<Source> sources = sources(factory, task, schema, requested);
    int position = indexOf(requested, ROW_INDEX);
    if (late && position < 0) {
      position = requested.size();
      requested.add(DataTypes.createStructField(ROW_INDEX, DataTypes.LongType, true));
    }
    StructType requestedSchema = Schemas.struct(requested);
    conf.set(ParquetReadSupport.SPARK_ROW_REQUESTED_SCHEMA(), requestedSchema.json());
    ParquetWriteSupport.setSchema(requestedSchema, conf);

    FileFilters filters = new FileFilters(factory.settings(), footer, schema);
    FilterPredicate filter = filters.predicate(factory.conditions());
    if (filter != null) {
      ParquetInputFormat.setFilterPredicate(conf, filter);
    }
    LiveRowsReader reader = filters.newReader(late ? null : deletes, filter != null);
    try {
      reader.initialize(new FileSplit(path, task.start(), task.length(), new String[0]), context);
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
    return new DataFileReader(reader, late ? deletes : null, position, sources);
  }

  /** Tells where each output column comes from, and collects what is asked of the file. */
  private static List<Source> sources(
      ColumnarReaderFactory factory, FileTask task, FileSchema schema, List<StructField> requested) {
    List<Source> sources = new ArrayList<>();
    for (StructField output : factory.output().fields()) {
      if (factory.columns().getFieldIndex(output.name()).isDefined()) {
        StructField column = factory.columns().apply(output.name());
        int id = Schemas.id(column);
        StructField physical = task.constants().containsKey(id) ? null : schema.physical(column);
        if (physical == null) {
          sources.add(new Source(-1, column, task.constants().get(id)));
        } else {
          sources.add(new Source(requested.size(), column, null));
          requested.add(physical);
        }
      } else if (output.name().equals(MetadataColumns.POSITION)) {
        sources.add(new Source(requested.size(), output, null));
        requested.add(DataTypes.createStructField(ROW_INDEX, DataTypes.LongType, true));
      } else {
        Object value =
            output.name().equals(MetadataColumns.FILE)
                ? UTF8String.fromString(task.path())
                : (Object) task.specId();
        sources.add(new Source(-1, output, value));
      }
    }
    return sources;
  }

  private static int indexOf(List<StructField> fields, String name) {
    for (int i = 0; i < fields.size(); i++) {
      if (fields.get(i).name().equals(name)) {
        return i;
      }
    }
    return -1;
  }

  /** Row ranges need to know where pages begin; some writers do not say. */
  private static boolean hasOffsetIndex(ParquetMetadata footer) {
    return footer.getBlocks().stream()
        .flatMap(block -> block.getColumns().stream())
        .allMatch(column -> column.getOffsetIndexReference() != null);
  }

  /** Moves on to the next batch that has a row. */
  boolean next() throws IOException {
    while (reader.nextBatch()) {
      ColumnarBatch read = reader.resultBatch();
      if (lateDeletes == null) {
        batch = assembled(read);
        return true;
      }
      long[] positions = read.column(positionColumn).getLongs(0, read.numRows());
      int[] live = lateDeletes.liveOf(positions, positions.length);
      if (live == null || live.length > 0) {
        batch = live == null ? assembled(read) : mapped(read, live);
        return true;
      }
    }
    return false;
  }

  ColumnarBatch batch() {
    return batch;
  }

  /** The vectors stay the same for all batches of a file; only their contents change. */
  private ColumnarBatch assembled(ColumnarBatch read) {
    if (vectors == null) {
      vectors = new ColumnVector[sources.size()];
      for (int i = 0; i < vectors.length; i++) {
        Source source = sources.get(i);
        if (source.column() < 0) {
          vectors[i] = Constants.vector(source.field().dataType(), source.constant());
        } else {
          vectors[i] = UuidColumnVector.over(read.column(source.column()), source.field());
        }
      }
      allRows = new ColumnarBatch(vectors);
    }
    allRows.setNumRows(read.numRows());
    return allRows;
  }

  private ColumnarBatch mapped(ColumnarBatch read, int[] live) {
    assembled(read);
    ColumnVector[] selected = new ColumnVector[vectors.length];
    for (int i = 0; i < selected.length; i++) {
      selected[i] =
          sources.get(i).column() < 0 ? vectors[i] : new SelectedColumnVector(vectors[i], live);
    }
    ColumnarBatch result = new ColumnarBatch(selected);
    result.setNumRows(live.length);
    return result;
  }

  @Override
  public void close() throws IOException {
    reader.close();
  }
}
