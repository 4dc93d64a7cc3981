package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Values;

/** Rows from the planner's answer. */
public final class GivenRows implements LocalScan {

  private final StructType schema;
  private final InternalRow[] rows;

  /**
   * @param rows a list of values for each row, in the order of the schema
   */
  public GivenRows(StructType schema, List<JsonNode> rows) {
    this.schema = schema;
    this.rows = rows.stream().map(row -> row(row, schema)).toArray(InternalRow[]::new);
  }

  private static InternalRow row(JsonNode values, StructType schema) {
    StructField[] fields = schema.fields();
    Object[] row = new Object[fields.length];
    for (int i = 0; i < fields.length; i++) {
      row[i] = Values.fromJson(values.get(i), fields[i].dataType());
    }
    return new GenericInternalRow(row);
  }

  @Override
  public InternalRow[] rows() {
    return rows;
  }

  @Override
  public StructType readSchema() {
    return schema;
  }
}
