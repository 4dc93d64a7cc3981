package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.read.partitioning.KeyGroupedPartitioning;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.types.DataType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.convert.Values;
import org.icecomb.spark.planner.Protocol.GroupingField;

/** The grouping of a scan's tasks, for Spark. */
final class Grouping {

  private final List<GroupingField> fields;
  private final List<DataType> types;

  Grouping(List<GroupingField> fields) {
    this.fields = fields;
    this.types = fields.stream().map(GroupingField::type).map(Schemas::parseType).toList();
  }

  Partitioning partitioning(int tasks) {
    return fields.isEmpty()
        ? new UnknownPartitioning(tasks)
        : new KeyGroupedPartitioning(
            fields.stream()
                .map(field -> Transforms.one(field.transform()))
                .toArray(Expression[]::new),
            tasks);
  }

  /** The grouping key of a task. */
  InternalRow key(JsonNode key) {
    Object[] values = new Object[types.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = Values.fromJson(key.get(i), types.get(i));
    }
    return new GenericInternalRow(values);
  }
}
