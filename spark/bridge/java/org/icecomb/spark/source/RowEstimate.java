package org.icecomb.spark.source;

import java.util.List;
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter$;
import org.apache.spark.sql.catalyst.plans.LeftAnti$;
import org.apache.spark.sql.catalyst.plans.LeftSemi$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.JavaConverters;

/**
 * The estimated number of rows of an optimized query. Spark's own estimate assumes that filters
 * keep everything, and that joins are cross joins.
 *
 * @param likely the number if each comparing filter keeps a tenth
 * @param most the number if filters keep everything
 */
record RowEstimate(double likely, double most) {

  /** An unknown number of rows, as of streams: assumed to be few. */
  private static final RowEstimate UNKNOWN = new RowEstimate(0, Double.POSITIVE_INFINITY);

  private static final double LEFT_BY_FILTER = 0.1;

  static RowEstimate of(LogicalPlan plan) {
    List<LogicalPlan> children = JavaConverters.seqAsJavaList(plan.children());
    if (children.isEmpty()) {
      return ofLeaf(plan);
    }
    RowEstimate first = of(children.get(0));
    if (plan instanceof Filter filter) {
      return InjectRuntimeFilter$.MODULE$.isLikelySelective(filter.condition())
          ? new RowEstimate(first.likely * LEFT_BY_FILTER, first.most)
          : first;
    }
    if (plan instanceof Aggregate aggregate && aggregate.groupingExpressions().isEmpty()) {
      return new RowEstimate(1, 1);
    }
    if (plan instanceof Join join
        && (join.joinType() == LeftSemi$.MODULE$ || join.joinType() == LeftAnti$.MODULE$)) {
      return first;
    }
    RowEstimate all = first;
    for (LogicalPlan child : children.subList(1, children.size())) {
      RowEstimate other = of(child);
      all =
          plan instanceof Union
              ? new RowEstimate(all.likely + other.likely, all.most + other.most)
              : new RowEstimate(
                  Math.max(all.likely, other.likely), Math.max(all.most, other.most));
    }
    return all;
  }

  private static RowEstimate ofLeaf(LogicalPlan leaf) {
    if (leaf instanceof LogicalRDD relation && relation.rdd() instanceof KeptRows kept) {
      return of(kept.query());
    }
    if (leaf instanceof DataSourceV2ScanRelation relation
        && relation.scan() instanceof SupportsReportStatistics scan
        && scan.estimateStatistics().numRows().isPresent()) {
      // Spark 4.3 ignores the row count of a table whose rows are changed
      return of(scan.estimateStatistics().numRows().getAsLong());
    }
    Statistics known = leaf.stats();
    if (known.rowCount().isDefined()) {
      return of(known.rowCount().get().doubleValue());
    }
    double bytes = known.sizeInBytes().doubleValue();
    return bytes < SQLConf.get().defaultSizeInBytes()
        ? of(bytes / Math.max(1, leaf.schema().defaultSize()))
        : UNKNOWN;
  }

  private static RowEstimate of(double rows) {
    return new RowEstimate(rows, rows);
  }
}
