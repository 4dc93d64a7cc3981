package org.icecomb.spark.read;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.aggregate.AggregateFunc;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.aggregate.Count;
import org.apache.spark.sql.connector.expressions.aggregate.CountStar;
import org.apache.spark.sql.connector.expressions.aggregate.Max;
import org.apache.spark.sql.connector.expressions.aggregate.Min;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.AskedAggregate;

/**
 * The aggregates of a query that the planner may be able to compute.
 *
 * @param schema the columns of the answer: those of the groups, then one column per function
 */
record AggregateQuestion(
    List<List<String>> groupBy, List<AskedAggregate> functions, StructType schema) {

  /**
   * @param table the schema of the table
   * @return null if the query has other aggregates than counts, minima and maxima of columns
   */
  static AggregateQuestion of(Aggregation aggregation, StructType table) {
    List<List<String>> groupBy = new ArrayList<>();
    List<AskedAggregate> functions = new ArrayList<>();
    StructType schema = new StructType();
    for (Expression expression : aggregation.groupByExpressions()) {
      List<String> path = path(expression);
      StructField column = column(path, table);
      if (column == null) {
        return null;
      }
      groupBy.add(path);
      schema = schema.add(String.join(".", path), column.dataType());
    }
    for (AggregateFunc asked : aggregation.aggregateExpressions()) {
      AskedAggregate function = function(asked);
      if (function == null) {
        return null;
      }
      StructField column = column(function.column(), table);
      if (function.column() != null && column == null) {
        return null;
      }
      functions.add(function);
      DataType type =
          function.name().equals("count") ? DataTypes.LongType : column.dataType();
      schema = schema.add(name(function), type);
    }
    return new AggregateQuestion(groupBy, functions, schema);
  }

  /** The name of an answer's column in plans. */
  private static String name(AskedAggregate function) {
    String column = function.column() == null ? "*" : String.join(".", function.column());
    return function.name() + "(" + column + ")";
  }

  private static AskedAggregate function(AggregateFunc asked) {
    if (asked instanceof CountStar) {
      return new AskedAggregate("count", null);
    }
    if (asked instanceof Count count) {
      return count.isDistinct() ? null : function("count", count.column());
    }
    if (asked instanceof Min min) {
      return function("min", min.column());
    }
    return asked instanceof Max max ? function("max", max.column()) : null;
  }

  private static AskedAggregate function(String name, Expression column) {
    List<String> path = path(column);
    return path == null ? null : new AskedAggregate(name, path);
  }

  private static List<String> path(Expression expression) {
    return expression instanceof NamedReference reference
        ? Arrays.asList(reference.fieldNames())
        : null;
  }

  private static StructField column(List<String> path, StructType table) {
    return path == null ? null : Schemas.find(table, path.toArray(new String[0]));
  }
}
