package org.icecomb.spark.convert;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.StructType;

/**
 * What is understood of a query's filters.
 *
 * @param conditions those that are understood
 * @param predicates the same as Spark has them
 * @param others those that are not
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
   * @param whole says of all conditions which of them hold for every row of the files they keep
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
