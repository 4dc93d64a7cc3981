package org.icecomb.spark.source;

import java.util.List;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.plans.physical.UnknownPartitioning;
import org.apache.spark.sql.execution.LogicalRDD;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;

/** The relation of stored rows, in place of their query. */
final class KeptRelation {

  private KeptRelation() {}

  static LogicalPlan of(
      SparkSession session, LogicalPlan query, RDD<InternalRow> rows, Statistics size) {
    return new LogicalRDD(
        query.output(),
        rows,
        new UnknownPartitioning(0),
        CommandPlan.list(List.of()),
        false,
        Option.empty(),
        (org.apache.spark.sql.classic.SparkSession) session,
        Option.apply(size),
        Option.empty(),
        false);
  }
}
