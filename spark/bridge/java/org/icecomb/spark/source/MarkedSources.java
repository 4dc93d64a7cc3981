package org.icecomb.spark.source;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.icecomb.spark.NodeChange;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;

/**
 * A rule that marks what MERGE, UPDATE and DELETE may read more than once, before it is resolved:
 * since 4.1 Spark plans the statement as soon as all its parts are resolved.
 */
public final class MarkedSources extends Rule<LogicalPlan> {

  /**
   * @param session the session of the plans, required by Spark but not used
   */
  public MarkedSources(SparkSession session) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(new NodeChange<>(MarkedSources::marked));
  }

  private static LogicalPlan marked(LogicalPlan node) {
    if (node instanceof MergeIntoTable merge && !(merge.sourceTable() instanceof SourceToKeep)) {
      return (LogicalPlan)
          merge.withNewChildren(
              CommandPlan.list(
                  List.of(merge.targetTable(), new SourceToKeep(merge.sourceTable(), false))));
    }
    if (node instanceof UpdateTable update && update.condition().isDefined()) {
      Expression condition = update.condition().get();
      return update.copy(update.table(), update.assignments(), Option.apply(marked(condition)));
    }
    if (node instanceof DeleteFromTable delete) {
      return delete.copy(delete.table(), marked(delete.condition()));
    }
    return node;
  }

  private static Expression marked(Expression condition) {
    return condition.transformUp(
        new NodeChange<>(
            part ->
                part instanceof SubqueryExpression subquery
                        && !subquery.resolved()
                        && !(subquery.plan() instanceof SourceToKeep)
                    ? (Expression)
                        subquery.withNewPlan(
                            new SourceToKeep(subquery.plan(), part instanceof Exists))
                    : part));
  }
}
