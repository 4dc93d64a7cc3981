package org.icecomb.spark.write;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.planner.Protocol.PartitionColumn;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/**
 * The rows of a streaming query, which Spark neither compares with the table nor makes fit it.
 *
 * <p>As in Iceberg columns are found by their names, and one that may be null may be left out.
 *
 * @param places where the query has each of the table's columns, or -1
 * @param types of the table's columns
 * @param required the names of columns that must have values, null for the others
 * @param asTheyAre whether rows are the table's without further ado
 */
record StreamedRows(int[] places, DataType[] types, String[] required, boolean asTheyAre)
    implements Serializable {

  /**
   * @param table its name, for messages
   * @param rows what the query gives
   * @param instructions how the table is written to
   */
  static StreamedRows of(String table, StructType rows, WriteInstructions instructions) {
    StructType known = Schemas.parse(instructions.files().schema());
    StructType visible = Schemas.visible(known);
    boolean caseSensitive = TableHandle.isCaseSensitive();
    Map<String, Integer> columns = new LinkedHashMap<>();
    for (int i = 0; i < known.size(); i++) {
      columns.put(key(known.fields()[i].name(), caseSensitive), i);
    }
    int[] places = new int[known.size()];
    Arrays.fill(places, -1);
    for (int i = 0; i < rows.size(); i++) {
      StructField field = rows.fields()[i];
      Integer column = columns.get(key(field.name(), caseSensitive));
      if (column != null && known.getFieldIndex(field.name()).isDefined()) {
        column = known.fieldIndex(field.name());
      }
      if (column == null || places[column] >= 0) {
        throw SparkErrors.unsupported(
            "Table %s: the query gives a column %s %s"
                .formatted(
                    table, field.name(), column == null ? "that it does not have" : "twice"),
            "select the table's columns: " + String.join(", ", visible.fieldNames()));
      }
      DataType type = visible.fields()[column].dataType();
      if (!fits(field.dataType(), type)) {
        throw SparkErrors.unsupported(
            "Table %s: column %s is %s, the query gives %s"
                .formatted(table, field.name(), type.sql(), field.dataType().sql()),
            "a streaming query must give the table's types: CAST(%s AS %s)"
                .formatted(field.name(), type.sql()));
      }
      places[column] = i;
    }
    Set<String> arranged = arranged(instructions);
    DataType[] types = new DataType[known.size()];
    String[] required = new String[known.size()];
    boolean asTheyAre = rows.size() == known.size();
    for (int i = 0; i < known.size(); i++) {
      StructField column = known.fields()[i];
      types[i] = visible.fields()[i].dataType();
      required[i] = column.nullable() ? null : column.name();
      asTheyAre = asTheyAre && places[i] == i && column.nullable();
      if (places[i] < 0 && (!column.nullable() || arranged.contains(column.name()))) {
        throw SparkErrors.unsupported(
            "Table " + table + ": the query does not give column " + column.name(),
            "only columns may be left out that may be null, and by which the table is neither "
                + "partitioned nor sorted");
      }
    }
    return new StreamedRows(places, types, required, asTheyAre);
  }

  /** The columns that rows are shared out and ordered by. */
  private static Set<String> arranged(WriteInstructions instructions) {
    Set<String> names = new HashSet<>();
    for (PartitionColumn field : instructions.partition()) {
      names.addAll(field.source().stream().limit(1).toList());
    }
    List<NamedReference> found = new ArrayList<>();
    for (SortOrder order : Transforms.ordering(instructions.ordering())) {
      found.addAll(List.of(order.expression().references()));
    }
    for (SortOrder order : Transforms.ordering(instructions.ranges())) {
      found.addAll(List.of(order.expression().references()));
    }
    found.forEach(reference -> names.add(reference.fieldNames()[0]));
    return names;
  }

  private static String key(String name, boolean caseSensitive) {
    return caseSensitive ? name : name.toLowerCase(Locale.ROOT);
  }

  /** Whether values of a type are those of a column, at every depth. */
  private static boolean fits(DataType given, DataType wanted) {
    if (given instanceof StructType from && wanted instanceof StructType to) {
      boolean same = from.size() == to.size();
      for (int i = 0; same && i < from.size(); i++) {
        StructField one = from.fields()[i];
        StructField other = to.fields()[i];
        same =
            one.name().equals(other.name())
                && (other.nullable() || !one.nullable())
                && fits(one.dataType(), other.dataType());
      }
      return same;
    }
    if (given instanceof ArrayType from && wanted instanceof ArrayType to) {
      return (to.containsNull() || !from.containsNull())
          && fits(from.elementType(), to.elementType());
    }
    if (given instanceof MapType from && wanted instanceof MapType to) {
      return (to.valueContainsNull() || !from.valueContainsNull())
          && fits(from.keyType(), to.keyType())
          && fits(from.valueType(), to.valueType());
    }
    return given.equals(wanted);
  }

  /** A writer of the query's rows, given one of the table's. */
  DataWriter<InternalRow> fitting(DataWriter<InternalRow> writer) {
    return asTheyAre ? writer : new FittingWriter(this, writer);
  }

  /** The row of the table; it may share the memory of the query's. */
  private InternalRow ofTable(InternalRow row) {
    Object[] values = new Object[places.length];
    for (int i = 0; i < places.length; i++) {
      int place = places[i];
      values[i] = place < 0 || row.isNullAt(place) ? null : row.get(place, types[i]);
      if (values[i] == null && required[i] != null) {
        throw new IllegalArgumentException(
            "A row of the query has null for column " + required[i] + ", which must have a value");
      }
    }
    return new GenericInternalRow(values);
  }

  private record FittingWriter(StreamedRows rows, DataWriter<InternalRow> writer)
      implements DataWriter<InternalRow> {

    @Override
    public void write(InternalRow row) throws IOException {
      writer.write(rows.ofTable(row));
    }

    @Override
    public WriterCommitMessage commit() throws IOException {
      return writer.commit();
    }

    @Override
    public void abort() throws IOException {
      writer.abort();
    }

    @Override
    public CustomTaskMetric[] currentMetricsValues() {
      return writer.currentMetricsValues();
    }

    @Override
    public void close() throws IOException {
      writer.close();
    }
  }
}
