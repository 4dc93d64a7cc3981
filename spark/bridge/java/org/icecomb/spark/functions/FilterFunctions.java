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
 * Names the partition functions in filters again, where Spark has made calls of their code of them and
 * would not hand those to a table (3.5).
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
   * @param session whose plans are looked at, as Spark makes its rules; nothing is asked of it
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
