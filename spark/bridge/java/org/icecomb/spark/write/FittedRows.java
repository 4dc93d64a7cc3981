package org.icecomb.spark.write;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.planner.Protocol.PartitionColumn;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/**
 * Rows that Spark neither compares with the table nor casts to fit it: those of streaming queries,
 * and those written to a table that accepts any schema.
 *
 * <p>As in Iceberg, columns are matched by name, nullable ones may be missing, and narrower numbers
 * are widened to the table's type.
 *
 * @param fit converts a row to the table's; null if no conversion is needed
 */
record FittedRows(FittedValue.Struct fit) implements Serializable {

  /**
   * @param table the table's name, for messages
   * @param rows the schema of the query's rows
   * @param instructions the planner's instructions for the write
   */
  static FittedRows of(String table, StructType rows, WriteInstructions instructions) {
    StructType known = Schemas.visible(Schemas.parse(instructions.files().schema()));
    FittedValue.Struct fit =
        FittedValue.struct(table, rows, known, "", TableHandle.isCaseSensitive());
    Set<String> arranged = arranged(instructions);
    for (int i = 0; i < known.size(); i++) {
      StructField column = known.fields()[i];
      if (fit.lacks(i) && column.metadata().contains(Schemas.CURRENT_DEFAULT)) {
        throw SparkErrors.unsupported(
            "The rows written to table " + table + " have no column " + column.name()
                + ", whose default Spark does not fill in here",
            "Add the column to the rows, with its default or another value.");
      }
      if (fit.lacks(i) && arranged.contains(column.name())) {
        throw FittedValue.lacking(table, column.name());
      }
    }
    return new FittedRows(fit.isIdentity() ? null : fit);
  }

  /** The columns by which rows are distributed and ordered. */
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

  /** The writers of the query's rows, over those of the table's rows. */
  DataWriterFactory fitting(DataWriterFactory writers) {
    return fit == null ? writers : new FittingWriters(fit, writers);
  }

  private record FittingWriters(FittedValue.Struct fit, DataWriterFactory writers)
      implements DataWriterFactory {

    @Override
    public DataWriter<InternalRow> createWriter(int partitionId, long taskId) {
      return new FittingWriter(fit, writers.createWriter(partitionId, taskId));
    }
  }

  private static final class FittingWriter extends ForwardingWriter {

    private final FittedValue.Struct fit;

    FittingWriter(FittedValue.Struct fit, DataWriter<InternalRow> writer) {
      super(writer);
      this.fit = fit;
    }

    @Override
    public void write(InternalRow row) throws IOException {
      super.write(fit.of(row));
    }
  }
}
