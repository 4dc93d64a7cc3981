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
import scala.Function1;
import scala.runtime.AbstractFunction1;
import scala.runtime.AbstractPartialFunction;

/**
 * A rule that restores partition functions in filters, which Spark 3.5 has replaced by calls of
 * their code that it would not push down to a table.
 */
public final class FilterFunctions extends Rule<LogicalPlan> {

  private static final Function1<Expression, Expression> NAMING =
      new AbstractFunction1<>() {
        @Override
        public Expression apply(Expression expression) {
          return expression.transform(
              new AbstractPartialFunction<Expression, Expression>() {
                @Override
                public boolean isDefinedAt(Expression part) {
                  return part instanceof StaticInvoke call && function(call) != null;
                }

                @Override
                public Expression apply(Expression part) {
                  StaticInvoke call = (StaticInvoke) part;
                  return new ApplyFunctionExpression(function(call), call.arguments());
                }
              });
        }
      };

  /**
   * @param session the session of the plans, required by Spark but not used
   */
  public FilterFunctions(SparkSession session) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.transformDown(
        new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
          @Override
          public boolean isDefinedAt(LogicalPlan part) {
            return part instanceof Filter
                || part instanceof DeleteFromTable
                || part instanceof ReplaceData
                || part instanceof WriteDelta;
          }

          @Override
          public LogicalPlan apply(LogicalPlan part) {
            return (LogicalPlan) part.mapExpressions(NAMING);
          }
        });
  }

  private static BoundFunction function(StaticInvoke call) {
    return BoundFunction.class.isAssignableFrom(call.staticObject())
        ? PartitionFunctions.of(call.staticObject(), call.arguments().last().dataType())
        : null;
  }
}
