package org.icecomb.spark.read;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Schemas;

/** Reads a range of one data file as batches of the columns that a query asks for. */
final class DataFileReader implements Closeable {

  private final FormatReader reader;
  private final PositionDeletes deletes;
  private final List<Source> sources;
  private ColumnVector[] vectors;
  private ColumnarBatch allRows;
  private ColumnarBatch batch;

  /**
   * Where an output column comes from: a column of the file, the rows' positions, or one value for
   * all rows. A column that the file does not have is null.
   */
  private record Source(Kind kind, int place, StructField field, Object constant) {

    enum Kind {
      COLUMN,
      POSITION,
      CONSTANT
    }
  }

  private DataFileReader(FormatReader reader, PositionDeletes deletes, List<Source> sources) {
    this.reader = reader;
    this.deletes = deletes;
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
    List<StructField> read = new ArrayList<>();
    List<Source> sources = new ArrayList<>();
    boolean positions = false;
    for (StructField output : factory.output().fields()) {
      if (factory.columns().getFieldIndex(output.name()).isDefined()) {
        StructField column = factory.columns().apply(output.name());
        int id = Schemas.id(column);
        if (task.constants().containsKey(id)) {
          sources.add(new Source(Source.Kind.CONSTANT, -1, column, task.constants().get(id)));
        } else {
          sources.add(new Source(Source.Kind.COLUMN, read.size(), column, null));
          read.add(column);
        }
      } else if (output.name().equals(MetadataColumns.POSITION)) {
        sources.add(new Source(Source.Kind.POSITION, -1, output, null));
        positions = true;
      } else {
        Object value =
            output.name().equals(MetadataColumns.FILE)
                ? UTF8String.fromString(task.path())
                : (Object) task.specId();
        sources.add(new Source(Source.Kind.CONSTANT, -1, output, value));
      }
    }
    PositionDeletes deletes = task.deletes() == null ? null : PositionDeletes.unpack(task.deletes());
    FormatReader reader =
        FormatReader.open(
            new FileRequest(
                factory.configuration(),
                factory.settings(),
                task.format(),
                new Path(task.path()),
                task.start(),
                task.length(),
                Schemas.struct(read),
                positions,
                deletes,
                factory.conditions(),
                factory.mapping() == null ? null : NameMapping.parse(factory.mapping())));
    return new DataFileReader(reader, reader.skipsDeleted() ? null : deletes, sources);
  }

  /** Moves on to the next batch that has a row. */
  boolean next() throws IOException {
    while (reader.next()) {
      if (deletes == null) {
        batch = assembled();
        return true;
      }
      long[] positions = reader.positions().getLongs(0, reader.rows());
      int[] live = deletes.liveOf(positions, positions.length);
      if (live == null || live.length > 0) {
        batch = live == null ? assembled() : selected(live);
        return true;
      }
    }
    return false;
  }

  ColumnarBatch batch() {
    return batch;
  }

  /** The vectors stay the same for all batches of a file; only their contents change. */
  private ColumnarBatch assembled() {
    if (vectors == null) {
      vectors = new ColumnVector[sources.size()];
      for (int i = 0; i < vectors.length; i++) {
        vectors[i] = vector(sources.get(i));
      }
      allRows = new ColumnarBatch(vectors);
    }
    allRows.setNumRows(reader.rows());
    return allRows;
  }

  private ColumnVector vector(Source source) {
    ColumnVector found =
        switch (source.kind()) {
          case COLUMN -> reader.column(source.place());
          case POSITION -> reader.positions();
          case CONSTANT -> null;
        };
    return found == null ? Constants.vector(source.field().dataType(), source.constant()) : found;
  }

  private ColumnarBatch selected(int[] live) {
    assembled();
    ColumnVector[] selected = new ColumnVector[vectors.length];
    for (int i = 0; i < selected.length; i++) {
      selected[i] =
          sources.get(i).kind() == Source.Kind.CONSTANT
              ? vectors[i]
              : new SelectedColumnVector(vectors[i], live);
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
