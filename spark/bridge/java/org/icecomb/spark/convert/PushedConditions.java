package org.icecomb.spark.convert;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructType;

/**
 * A query's filters, divided into those that can be converted and others.
 *
 * @param conditions the converted filters
 * @param predicates the same filters as Spark's predicates
 * @param others the filters that cannot be converted
 */
public record PushedConditions(
    List<Condition> conditions, Predicate[] predicates, Predicate[] others) {

  private static final Predicate[] NO_PREDICATES = {};
  public static final PushedConditions NONE =
      new PushedConditions(List.of(), NO_PREDICATES, NO_PREDICATES);

  /**
   * @param schema the schema of the table that is filtered
   */
  public static PushedConditions of(Predicate[] predicates, StructType schema) {
    List<Condition> conditions = new ArrayList<>();
    List<Predicate> understood = new ArrayList<>();
    List<Predicate> others = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Condition condition = Condition.of(predicate, schema);
      if (condition == null) {
        others.add(predicate);
      } else {
        conditions.add(condition);
        understood.add(predicate);
      }
    }
    return new PushedConditions(
        conditions, understood.toArray(NO_PREDICATES), others.toArray(NO_PREDICATES));
  }

  /**
   * The filters that Spark has to evaluate on rows.
   *
   * @param whole decides for each condition whether it holds for every row of the selected files
   */
  public Predicate[] onRows(Function<List<Condition>, List<Boolean>> whole) {
    if (conditions.isEmpty()) {
      return others;
    }
    List<Boolean> decided = whole.apply(conditions);
    List<Predicate> left = new ArrayList<>();
    for (int i = 0; i < predicates.length; i++) {
      if (!decided.get(i)) {
        left.add(predicates[i]);
      }
    }
    left.addAll(List.of(others));
    return left.toArray(NO_PREDICATES);
  }
}
