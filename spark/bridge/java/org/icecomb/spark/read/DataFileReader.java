package org.icecomb.spark.read;

import java.io.Closeable;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Schemas;

/** A reader of a range of one data file, as batches of the columns that a query reads. */
final class DataFileReader implements Closeable {

  private final FormatReader reader;
  /** Deletes, of which the format's reader may leave out some, or null. */
  private final PositionDeletes deletes;

  private final List<Source> sources;
  private final List<ByValue> byValue;
  /** The marks of deleted rows, if they are not left out; else null. */
  private final OnHeapColumnVector marks;
  private long deletedByValue;
  private ColumnVector[] vectors;
  private ColumnarBatch allRows;
  private ColumnarBatch batch;

  /**
   * The source of an output column: a column of the file, the rows' positions, whether they are
   * deleted, or one value for all rows. A column that the file does not have has the constant. Rows
   * for which the file states no lineage inherit it: the constant, and for their id the position.
   */
  private record Source(Kind kind, int place, StructField field, Object constant) {

    enum Kind {
      COLUMN,
      POSITION,
      DELETED,
      ROW_ID,
      INHERITED,
      CONSTANT
    }
  }

  /** Deletes of rows by their values, and the sources of a row's values. */
  private static final class ByValue {

    private final KeySet keys;
    private final List<Source> columns;
    private final List<List<Integer>> paths;
    private KeyReader rows;

    ByValue(KeySet keys, List<Source> columns, List<List<Integer>> paths) {
      this.keys = keys;
      this.columns = columns;
      this.paths = paths;
    }
  }

  private DataFileReader(
      FormatReader reader,
      PositionDeletes deletes,
      List<Source> sources,
      List<ByValue> byValue,
      boolean marks) {
    this.reader = reader;
    this.deletes = deletes;
    this.sources = sources;
    this.byValue = byValue;
    this.marks = marks ? new OnHeapColumnVector(0, DataTypes.BooleanType) : null;
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
    StructType read = withoutConstants(factory.columns(), task);
    for (EqualityDeletes equality : task.equalityDeletes()) {
      read = ReadColumns.widened(read, withoutConstants(equality.columns(), task));
    }
    for (StructField column : factory.lineage().fields()) {
      if (task.constants().get(Schemas.id(column)) != null) {
        read = read.add(column);
      }
    }
    List<Source> sources = new ArrayList<>();
    for (StructField output : factory.output().fields()) {
      sources.add(source(factory, task, read, output));
    }
    boolean marks = sources.stream().anyMatch(source -> source.kind() == Source.Kind.DELETED);
    List<ByValue> byValue = new ArrayList<>();
    for (EqualityDeletes equality : task.equalityDeletes()) {
      byValue.add(byValue(factory, task, read, equality));
    }
    PositionDeletes deletes = PositionDeletes.of(factory, task);
    FormatReader reader =
        FormatReader.open(
            new FileRequest(
                factory.configuration(),
                factory.settings(),
                task.format(),
                new Path(task.path()),
                task.start(),
                task.bytes(),
                task.rows(),
                read,
                sources.stream().anyMatch(DataFileReader::needsPosition)
                    || marks && deletes != null,
                marks ? null : deletes,
                factory.conditions(),
                factory.nameMapping()));
    return new DataFileReader(reader, deletes, sources, byValue, marks);
  }

  private static boolean needsPosition(Source source) {
    return source.kind() == Source.Kind.POSITION || source.kind() == Source.Kind.ROW_ID;
  }

  private static StructType withoutConstants(StructType columns, FileTask task) {
    return Schemas.struct(
        Arrays.stream(columns.fields())
            .filter(column -> !task.constants().containsKey(Schemas.id(column)))
            .toList());
  }

  private static Source source(
      ColumnarReaderFactory factory, FileTask task, StructType read, StructField output) {
    if (factory.columns().getFieldIndex(output.name()).isDefined()) {
      return source(task, read, factory.columns().apply(output.name()));
    }
    if (output.name().equals(MetadataColumns.POSITION)) {
      return new Source(Source.Kind.POSITION, -1, output, null);
    }
    if (output.name().equals(MetadataColumns.DELETED)) {
      return new Source(Source.Kind.DELETED, -1, output, null);
    }
    if (factory.lineage().getFieldIndex(output.name()).isDefined()) {
      return inherited(task, read, factory.lineage().apply(output.name()));
    }
    Object value =
        switch (output.name()) {
          case MetadataColumns.FILE -> UTF8String.fromString(task.path());
          case MetadataColumns.FILE_ID -> MetadataColumns.fileId(task.path());
          case MetadataColumns.PARTITION -> task.partition();
          default -> task.specId();
        };
    return new Source(Source.Kind.CONSTANT, -1, output, value);
  }

  private static Source source(FileTask task, StructType read, StructField column) {
    int id = Schemas.id(column);
    return task.constants().containsKey(id)
        ? new Source(Source.Kind.CONSTANT, -1, column, task.constants().get(id))
        : stored(ReadColumns.path(read, id).get(0), column);
  }

  private static Source inherited(FileTask task, StructType read, StructField column) {
    Object value = task.constants().get(Schemas.id(column));
    if (value == null) {
      return new Source(Source.Kind.CONSTANT, -1, column, null);
    }
    boolean id = column.name().equals(MetadataColumns.ROW_ID);
    int place = ReadColumns.path(read, Schemas.id(column)).get(0);
    return new Source(id ? Source.Kind.ROW_ID : Source.Kind.INHERITED, place, column, value);
  }

  private static Source stored(int place, StructField column) {
    return new Source(Source.Kind.COLUMN, place, column, InitialDefaults.of(column));
  }

  private static ByValue byValue(
      ColumnarReaderFactory factory, FileTask task, StructType read, EqualityDeletes equality)
      throws IOException {
    StructType compared = ReadColumns.widened(new StructType(), equality.columns());
    List<Source> columns = new ArrayList<>();
    List<List<Integer>> paths = new ArrayList<>();
    for (int id : equality.fieldIds()) {
      StructField column = compared.fields()[ReadColumns.path(compared, id).get(0)];
      Source source = source(task, read, column);
      List<Integer> path = new ArrayList<>(List.of(columns.size()));
      if (source.kind() == Source.Kind.COLUMN) {
        List<Integer> found = ReadColumns.path(read, id);
        path.addAll(found.subList(1, found.size()));
        source = stored(source.place(), read.fields()[source.place()]);
      }
      columns.add(source);
      paths.add(path);
    }
    return new ByValue(KeySet.of(factory, equality), columns, paths);
  }

  /** Moves on to the next batch that has a row. */
  boolean next() throws IOException {
    while (reader.next()) {
      int[] live = live();
      if (marks != null) {
        mark(live);
        batch = assembled();
        return true;
      }
      if (live == null || live.length > 0) {
        batch = live == null ? assembled() : selected(live);
        return true;
      }
    }
    return false;
  }

  private void mark(int[] live) {
    int rows = reader.rows();
    marks.reserve(rows);
    for (int row = 0; row < rows; row++) {
      marks.putBoolean(row, live != null);
    }
    for (int i = 0; live != null && i < live.length; i++) {
      marks.putBoolean(live[i], false);
    }
  }

  /** Indices into the batch that was read, or null when all its rows are live. */
  private int[] live() {
    int[] live = null;
    if (deletes != null) {
      long[] positions = reader.positions().getLongs(0, reader.rows());
      live = deletes.liveOf(positions, positions.length);
    }
    for (ByValue each : byValue) {
      if (each.rows == null) {
        each.rows = new KeyReader(each.columns.stream().map(this::read).toList(), each.paths);
      }
      int before = live == null ? reader.rows() : live.length;
      live = each.keys.liveOf(each.rows, reader.rows(), live);
      deletedByValue += before - (live == null ? reader.rows() : live.length);
    }
    return live;
  }

  /** The number of rows deleted so far. */
  long deletesApplied() {
    return deletedByValue + (deletes == null ? 0 : deletes.applied());
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
    ColumnVector narrowed = ReadColumns.narrowed(read(source), source.field().dataType());
    return Nanoseconds.shown(narrowed, source.field());
  }

  private ColumnVector read(Source source) {
    ColumnVector found =
        switch (source.kind()) {
          case COLUMN -> reader.column(source.place());
          case POSITION -> reader.positions();
          case DELETED -> marks;
          case ROW_ID ->
              new LineageColumnVector(
                  reader.column(source.place()), (long) source.constant(), reader.positions());
          case INHERITED ->
              new LineageColumnVector(
                  reader.column(source.place()), (long) source.constant(), null);
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
