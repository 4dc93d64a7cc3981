package org.icecomb.spark.statement;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;

/**
 * A rule for CREATE TABLE … LIKE … USING iceberg in the session catalog: since 4.2 Spark calls the
 * catalog only if the other table is not Spark's own, and otherwise copies its entry.
 */
public final class TablesLike extends Rule<LogicalPlan> {

  private final SparkSession session;

  public TablesLike(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (plan instanceof CreateTableLikeCommand like && like.provider().isDefined()) {
      TableLike ours =
          new TableLike(session, name(like.targetTable()), name(like.sourceTable()), like);
      return ours.isOurs() ? ours.command() : plan;
    }
    return plan;
  }

  private static List<String> name(TableIdentifier table) {
    List<String> parts = new ArrayList<>();
    if (table.database().isDefined()) {
      parts.add(table.catalog().isDefined() ? table.catalog().get() : "spark_catalog");
      parts.add(table.database().get());
    }
    parts.add(table.table());
    return parts;
  }
}
