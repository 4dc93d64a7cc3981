package org.icecomb.spark.convert;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.UserDefinedScalarFunc;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.functions.PartitionFunctions;
import org.icecomb.spark.functions.PartitionTransform;
import org.icecomb.spark.planner.Json;

/**
 * The subject of a condition: a column, or a partition transform of one.
 *
 * @param column the column's path
 * @param transform the transform as in table metadata, or null for the column itself
 * @param type the type of the compared values
 */
record Term(String[] column, String transform, DataType type) implements Serializable {

  /**
   * @return null if the expression is neither a column of the schema nor an icecomb function of one
   */
  static Term of(Expression expression, StructType schema) {
    if (expression instanceof NamedReference reference) {
      StructField field = Schemas.find(schema, reference.fieldNames());
      return field == null ? null : new Term(reference.fieldNames(), null, field.dataType());
    }
    if (!(expression instanceof UserDefinedScalarFunc function)
        || !PartitionFunctions.isOurs(function.canonicalName())) {
      return null;
    }
    Expression[] arguments = function.children();
    Term source = of(arguments[arguments.length - 1], schema);
    Integer parameter = parameter(arguments);
    if (source == null || source.transform != null || parameter == null) {
      return null;
    }
    PartitionTransform transform =
        PartitionFunctions.transform(function.name(), parameter, source.type);
    return transform == null
        ? null
        : new Term(source.column, transform.toString(), transform.resultType());
  }

  /** The number of buckets or the width; 0 for functions without, null if it is not a constant. */
  private static Integer parameter(Expression[] arguments) {
    if (arguments.length == 1) {
      return 0;
    }
    return arguments[0] instanceof Literal<?> literal && literal.value() instanceof Integer number
        ? number
        : null;
  }

  /** Adds the term to the JSON of a condition. */
  void into(ObjectNode json) {
    json.set("column", Json.array(column));
    if (transform != null) {
      json.put("transform", transform);
    }
  }

  /** The term as plans show it. */
  @Override
  public String toString() {
    String name = String.join(".", column);
    return transform == null ? name : transform + "(" + name + ")";
  }

  /** The term's name in a data file, or null if the file has no column of its values. */
  String physicalName(Condition.FileColumns columns, DataType literalType) {
    return transform == null ? columns.physicalName(column, literalType) : null;
  }
}
