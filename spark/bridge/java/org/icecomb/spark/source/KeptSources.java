package org.icecomb.spark.source;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.NodeChange;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.SparkVersion;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * A rule that reads only once what a MERGE, UPDATE or DELETE of an icecomb table would read again
 * and might find changed: its source, or the subqueries of its condition. Spark plans them twice,
 * to find the files with rows to change and to change them, and an UPDATE's condition again for the
 * unchanged rows. Queries that {@link RepeatableRows} knows to have the same rows each time stay
 * unchanged; the rows of all others are stored.
 */
public final class KeptSources extends Rule<LogicalPlan> {

  static final String SETTING = "spark.sql.icecomb.keepSourceRows";

  private final SparkSession session;

  public KeptSources(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan decided =
        plan.resolveOperatorsUp(new NodeChange<>(this::decided));
    // a subquery is resolved by itself, before the statement that it belongs to
    Option<LogicalPlan> outer = AnalysisContext.get().outerPlan();
    if (decided instanceof SourceToKeep marked && marked.source().resolved() && outer.isDefined()) {
      return target(outer.get()) == null
          ? marked.source()
          : once(marked.source(), marked.exists(), statement(outer.get()), true);
    }
    return decided;
  }

  private LogicalPlan decided(LogicalPlan node) {
    if (node instanceof MergeIntoTable merge && merge.targetTable().resolved()) {
      LogicalPlan given = merge.sourceTable();
      LogicalPlan source = given instanceof SourceToKeep marked ? marked.source() : given;
      if (source.resolved()) {
        boolean again = target(merge) != null && readsAgain(merge);
        LogicalPlan kept = again ? once(source, false, "MERGE", false) : source;
        return kept == given
            ? merge
            : (LogicalPlan)
                merge.withNewChildren(CommandPlan.list(List.of(merge.targetTable(), kept)));
      }
    }
    // if nothing was marked, subqueries are already resolved
    if (!SparkVersion.marksSources()
        && (node instanceof UpdateTable || node instanceof DeleteFromTable)
        && node.resolved()
        && target(node) != null) {
      return conditioned(node);
    }
    return node;
  }

  /**
   * Whether Spark reads the source again: not for inserts only, and not without a filter on files.
   */
  private static boolean readsAgain(MergeIntoTable merge) {
    return Choice.of(SETTING) == Choice.ALWAYS
        || SQLConf.get().runtimeRowLevelOperationGroupFilterEnabled()
            && merge.notMatchedBySourceActions().isEmpty()
            && !merge.matchedActions().isEmpty();
  }

  private LogicalPlan conditioned(LogicalPlan node) {
    if (node instanceof UpdateTable update && update.condition().isDefined()) {
      Expression condition = update.condition().get();
      Expression kept = conditioned(condition, "UPDATE");
      return kept == condition
          ? node
          : update.copy(update.table(), update.assignments(), Option.apply(kept));
    }
    if (node instanceof DeleteFromTable delete) {
      Expression kept = conditioned(delete.condition(), "DELETE");
      return kept == delete.condition() ? node : delete.copy(delete.table(), kept);
    }
    return node;
  }

  private Expression conditioned(Expression condition, String statement) {
    return condition.transformUp(
        new NodeChange<>(
            part -> {
              if (!(part instanceof SubqueryExpression subquery)) {
                return part;
              }
              LogicalPlan kept = once(subquery.plan(), part instanceof Exists, statement, true);
              return kept == subquery.plan() ? part : (Expression) subquery.withNewPlan(kept);
            }));
  }

  /** The icecomb table that a statement changes, or null. */
  private static IcecombTable target(LogicalPlan statement) {
    LogicalPlan table =
        statement instanceof MergeIntoTable merge
            ? merge.targetTable()
            : statement instanceof UpdateTable update
                ? update.table()
                : statement instanceof DeleteFromTable delete ? delete.table() : null;
    while (table != null && JavaConverters.seqAsJavaList(table.children()).size() == 1) {
      table = JavaConverters.seqAsJavaList(table.children()).get(0);
    }
    return table instanceof DataSourceV2Relation relation
            && relation.table() instanceof IcecombTable ours
        ? ours
        : null;
  }

  private static String statement(LogicalPlan plan) {
    return plan instanceof UpdateTable ? "UPDATE" : "DELETE";
  }

  private LogicalPlan once(
      LogicalPlan source, boolean exists, String statement, boolean ofCondition) {
    boolean keeps =
        switch (Choice.of(SETTING)) {
          case NEVER -> false;
          case ALWAYS -> !RepeatableRows.isKept(source);
          case AUTO -> !RepeatableRows.isRepeatable(source);
        };
    if (!keeps) {
      return source;
    }
    if (!RepeatableRows.refersOutside(source)) {
      return kept(source);
    }
    if (!ofCondition) {
      throw unkeepable(statement);
    }
    // the part that depends on the table's own rows is computed again, over stored rows
    return parts(source, exists, statement);
  }

  private LogicalPlan parts(LogicalPlan plan, boolean exists, String statement) {
    if (RepeatableRows.isRepeatable(plan)) {
      return plan;
    }
    if (!RepeatableRows.refersOutside(plan)) {
      return kept(plan);
    }
    boolean limits = exists && (plan instanceof GlobalLimit || plan instanceof LocalLimit);
    if (!limits && !RepeatableRows.isRepeatableStep(plan)) {
      throw unkeepable(statement);
    }
    return plan.mapChildren(child -> parts(child, limits, statement));
  }

  private static RuntimeException unkeepable(String statement) {
    return SparkErrors.unsupported(
        statement
            + " reads a subquery more than once which can find other rows each time (LIMIT, a window,"
            + " duplicates that are dropped), and which cannot be read on its own, as it refers to"
            + " columns from outside",
        "Write its rows to a table first, or compute them in a subquery of their own.");
  }

  private LogicalPlan kept(LogicalPlan source) {
    QueryExecution execution =
        AnalysisContext.withNewAnalysisContext(
            () -> {
              QueryExecution planned =
                  session
                      .sessionState()
                      .executePlan(source, session.sessionState().executePlan$default$2());
              // planned here, as the statement's user
              planned.executedPlan();
              return planned;
            });
    return KeptRelation.of(
        session,
        source,
        new KeptRows(session.sparkContext(), execution),
        execution.optimizedPlan().stats());
  }
}
