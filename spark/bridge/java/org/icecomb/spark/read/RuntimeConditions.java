package org.icecomb.spark.read;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.convert.Transforms;

/** Conversion of Spark's runtime filters. */
final class RuntimeConditions {

  private RuntimeConditions() {}

  /**
   * @param schema the schema of the table that is filtered
   */
  static List<Condition> of(Predicate[] predicates, StructType schema) {
    List<Condition> conditions = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Condition condition = Condition.of(named(predicate, schema), schema);
      if (condition != null) {
        conditions.add(condition);
      }
    }
    return conditions;
  }

  /**
   * Replaces names by the table's: runtime filters have the query's spelling if not case-sensitive.
   */
  private static Predicate named(Predicate predicate, StructType schema) {
    Expression[] children = predicate.children();
    if (!predicate.name().equals("IN")
        || !(children[0] instanceof NamedReference reference)
        || reference.fieldNames().length != 1
        || SparkSession.active().sessionState().conf().caseSensitiveAnalysis()) {
      return predicate;
    }
    List<String> meant =
        Arrays.stream(schema.fieldNames())
            .filter(name -> name.equalsIgnoreCase(reference.fieldNames()[0]))
            .toList();
    if (meant.size() != 1) {
      return predicate;
    }
    children = children.clone();
    children[0] = Transforms.column(meant.get(0));
    return new Predicate("IN", children);
  }
}
