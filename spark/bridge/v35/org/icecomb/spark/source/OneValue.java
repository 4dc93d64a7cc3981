package org.icecomb.spark.source;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery;
import org.apache.spark.sql.catalyst.optimizer.ColumnPruning$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;

/** An aggregate of all rows of an already optimized query, as a value in another one. */
final class OneValue {

  private OneValue() {}

  static Expression of(Alias aggregate, LogicalPlan query) {
    LogicalPlan plan =
        new Aggregate(
            CommandPlan.list(List.of()),
            CommandPlan.list(List.<NamedExpression>of(aggregate)),
            query);
    return new ScalarSubquery(
        ColumnPruning$.MODULE$.apply(plan),
        CommandPlan.list(List.of()),
        NamedExpression.newExprId(),
        CommandPlan.list(List.of()),
        Option.empty(),
        Option.empty());
  }
}
