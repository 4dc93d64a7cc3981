package org.icecomb.spark.source;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningExpression;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InSubquery;
import org.apache.spark.sql.catalyst.expressions.ListQuery;
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter$;
import org.apache.spark.sql.catalyst.plans.JoinType;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.RightOuter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.RowLevelWrite;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.NodeChange;
import org.icecomb.spark.read.DeltaScan;
import org.icecomb.spark.statement.CommandPlan;
import scala.collection.JavaConverters;

/**
 * A strategy that leaves out rows of the table changed by a MERGE, UPDATE or DELETE before they are
 * joined with its source, if no row of the source has their keys: the join would shuffle and sort
 * them in vain. Spark's own rule for that requires tables of gigabytes and a filter on the source.
 *
 * <p>It applies to the join that finds the rows to change (merge-on-read), and to the one that
 * finds files or partitions with such rows; never to the join that rewrites files, which needs all
 * their rows. The source is read once more for its keys, so it must have the same rows each time:
 * sources that {@link RepeatableRows} accepts, and those that {@link KeptSources} stores.
 *
 * <p>A strategy sees statements after the sizes of their tables are known, unlike any rule of an
 * extension.
 */
public final class KeyFilters extends SparkStrategy {

  static final String SETTING = "spark.sql.icecomb.mergeKeyFilter";

  /** For fewer rows, a join is faster than another query. */
  private static final double FEWEST_ROWS = 1_000_000;

  /** If more than a quarter of the table's rows may match, too many pass. */
  private static final double LARGEST_SHARE = 0.25;

  /** The most keys to expect, as a share of the table's rows, if their number is unknown. */
  private static final double LARGEST_FILTER = 0.125;

  /**
   * @param session the session of the plans, required by Spark but not used
   */
  public KeyFilters(SparkSession session) {}

  @Override
  public scala.collection.immutable.List<SparkPlan> apply(LogicalPlan plan) {
    if (plan instanceof RowLevelWrite write
        && write.originalTable() instanceof DataSourceV2Relation relation
        && relation.table() instanceof IcecombTable) {
      Choice choice = Choice.of(SETTING);
      LogicalPlan query = choice == Choice.NEVER ? write.query() : filtered(write.query(), choice);
      if (query != write.query()) {
        return CommandPlan.list(List.of(planLater((LogicalPlan) write.withNewQuery(query))));
      }
    }
    return CommandPlan.list(List.of());
  }

  private static LogicalPlan filtered(LogicalPlan plan, Choice choice) {
    LogicalPlan inside =
        plan.mapChildren(child -> filtered(child, choice));
    if (inside instanceof Filter filter) {
      Expression condition = withQuestionsFiltered(filter.condition(), choice);
      return condition == filter.condition() ? filter : new Filter(condition, filter.child());
    }
    return inside instanceof Join join && scan(join.left()) instanceof DeltaScan
        ? filtered(join, choice)
        : inside;
  }

  /** Filters the queries in a condition on a table by which Spark finds where rows change. */
  private static Expression withQuestionsFiltered(Expression condition, Choice choice) {
    return condition.transformDown(
        new NodeChange<>(
            part -> {
              if (!(part instanceof DynamicPruningExpression pruning
                  && pruning.child() instanceof InSubquery question)) {
                return part;
              }
              ListQuery asked = question.query();
              LogicalPlan filtered = questionFiltered(asked.plan(), choice);
              return filtered == asked.plan()
                  ? part
                  : new DynamicPruningExpression(
                      new InSubquery(question.values(), asked.withNewPlan(filtered)));
            }));
  }

  private static LogicalPlan questionFiltered(LogicalPlan plan, Choice choice) {
    if (plan instanceof Join join) {
      return join.joinType() == LeftSemi$.MODULE$ ? filtered(join, choice) : join;
    }
    return JavaConverters.seqAsJavaList(plan.children()).size() == 1
        ? plan.mapChildren(child -> questionFiltered(child, choice))
        : plan;
  }

  /** Filters the table, on the left, of whose rows these joins need only those with a match. */
  private static Join filtered(Join join, Choice choice) {
    LogicalPlan table = join.left();
    LogicalPlan source = join.right();
    KeyFilter filter = KeyFilter.of(join);
    if (filter == null
        || !InjectRuntimeFilter$.MODULE$.canPruneLeft(join.joinType())
        || scan(table) == null
        || !RepeatableRows.isRepeatable(source)) {
      return join;
    }
    double rows = RowEstimate.of(table).most();
    RowEstimate keys = RowEstimate.of(source);
    if (choice == Choice.AUTO
        && (rows < FEWEST_ROWS || keys.likely() > rows * LARGEST_SHARE || isBroadcast(join))) {
      return join;
    }
    LogicalPlan left = filter.over(table, source, Math.min(keys.most(), rows * LARGEST_FILTER));
    return (Join) join.withNewChildren(CommandPlan.list(List.of(left, source)));
  }

  /** Whether Spark is likely to broadcast one side of a join. */
  private static boolean isBroadcast(Join join) {
    InjectRuntimeFilter$ spark = InjectRuntimeFilter$.MODULE$;
    JoinType type = join.joinType();
    return type != LeftSemi$.MODULE$
            && !spark.hintToNotBroadcastAndReplicateLeft(join.hint())
            && spark.canBroadcastBySize(join.left(), SQLConf.get())
        || type != RightOuter$.MODULE$
            && !spark.hintToNotBroadcastAndReplicateRight(join.hint())
            && spark.canBroadcastBySize(join.right(), SQLConf.get());
  }

  /** The scan of a side that does nothing else, or null; null also if it already has a filter. */
  private static Scan scan(LogicalPlan side) {
    LogicalPlan plan = side;
    while (plan instanceof Project || plan instanceof Filter) {
      if (plan instanceof Filter filter && KeyFilter.isIn(filter.condition())) {
        return null;
      }
      plan = JavaConverters.seqAsJavaList(plan.children()).get(0);
    }
    return plan instanceof DataSourceV2ScanRelation found ? found.scan() : null;
  }
}
