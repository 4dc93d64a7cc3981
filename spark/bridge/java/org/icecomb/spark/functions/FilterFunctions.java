package org.icecomb.spark.functions;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceData;
import org.apache.spark.sql.catalyst.plans.logical.WriteDelta;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.icecomb.spark.NodeChange;

/**
 * A rule that restores partition functions in filters, which Spark 3.5 has replaced by calls of
 * their code that it would not push down to a table.
 */
public final class FilterFunctions extends Rule<LogicalPlan> {

  /**
   * @param session the session of the plans, required by Spark but not used
   */
  public FilterFunctions(SparkSession session) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformDown(
        new NodeChange<>(
            part ->
                part instanceof Filter
                        || part instanceof DeleteFromTable
                        || part instanceof ReplaceData
                        || part instanceof WriteDelta
                    ? (LogicalPlan) part.mapExpressions(FilterFunctions::named)
                    : part));
  }

  private static Expression named(Expression expression) {
    return expression.transform(
        new NodeChange<>(
            part ->
                part instanceof StaticInvoke call && function(call) != null
                    ? new ApplyFunctionExpression(function(call), call.arguments())
                    : part));
  }

  private static BoundFunction function(StaticInvoke call) {
    return BoundFunction.class.isAssignableFrom(call.staticObject())
        ? PartitionFunctions.of(call.staticObject(), call.arguments().last().dataType())
        : null;
  }
}
