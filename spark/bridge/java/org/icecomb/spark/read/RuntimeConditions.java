package org.icecomb.spark.read;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Condition;

/** What is understood of predicates that Spark comes to know while a query runs. */
final class RuntimeConditions {

  private RuntimeConditions() {}

  /**
   * @param schema the schema of the table that is filtered
   */
  static List<Condition> of(Predicate[] predicates, StructType schema) {
    List<Condition> conditions = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Condition condition = Condition.of(withoutNulls(predicate), schema);
      if (condition != null) {
        conditions.add(condition);
      }
    }
    return conditions;
  }

  /** No row is in a list by its null: a predicate that must hold, and not its negation, needs none. */
  private static Predicate withoutNulls(Predicate predicate) {
    return predicate.name().equals("IN")
        ? new Predicate(
            "IN",
            Arrays.stream(predicate.children())
                .filter(child -> !(child instanceof Literal<?> value && value.value() == null))
                .toArray(Expression[]::new))
        : predicate;
  }
}
