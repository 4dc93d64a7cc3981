package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Values;

/** A scan answered by the planner with rows, without tasks that read files. */
final class AnsweredScan implements LocalScan {

  private final StructType schema;
  private final InternalRow[] rows;

  AnsweredScan(StructType schema, List<JsonNode> answer) {
    this.schema = schema;
    this.rows = answer.stream().map(this::row).toArray(InternalRow[]::new);
  }

  private InternalRow row(JsonNode values) {
    Object[] row = new Object[schema.size()];
    for (int i = 0; i < row.length; i++) {
      row[i] = Values.fromJson(values.get(i), schema.fields()[i].dataType());
    }
    return new GenericInternalRow(row);
  }

  @Override
  public StructType readSchema() {
    return schema;
  }

  @Override
  public InternalRow[] rows() {
    return rows;
  }
}
