package org.icecomb.spark.convert;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructType;

/**
 * What is understood of a query's filters; Spark evaluates all of them again on the rows.
 *
 * @param conditions those that are understood
 * @param predicates the same as Spark has them
 */
public record PushedConditions(List<Condition> conditions, Predicate[] predicates) {

  public static final PushedConditions NONE = new PushedConditions(List.of(), new Predicate[0]);

  /**
   * @param schema the schema of the table that is filtered
   */
  public static PushedConditions of(Predicate[] predicates, StructType schema) {
    List<Condition> conditions = new ArrayList<>();
    List<Predicate> understood = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Condition condition = Condition.of(predicate, schema);
      if (condition != null) {
        conditions.add(condition);
        understood.add(predicate);
      }
    }
    return new PushedConditions(conditions, understood.toArray(new Predicate[0]));
  }
}
