package org.icecomb.spark.source;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.OverwritePartitionsDynamic;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.write.RowLevelOperationTable;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.icecomb.spark.IcecombStagedTable;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.NodeChange;
import org.icecomb.spark.planner.Protocol.QueriedTable;
import org.icecomb.spark.write.MissingRows;
import org.icecomb.spark.write.RowLevelChange;
import scala.Product;

/**
 * A rule that records for writes the reads of the written table in their queries: concurrent
 * changes of these conflict with the write.
 *
 * <ul>
 *   <li>Spark runs an insert-only MERGE as an append (since 4.2 of a special kind) of the result of
 *       an anti-join with the table. It is recognized by this join, which reads the very columns
 *       that are written: other reads of the table, as in INSERT … WHERE NOT EXISTS, have their
 *       own columns.
 *   <li>REPLACE TABLE … AS SELECT may select from the table that it replaces.
 *   <li>INSERT OVERWRITE and INSERT … REPLACE may select from the table whose rows they replace,
 *       also from an older state of it: that of an old DataFrame, or one that the session has
 *       cached.
 *   <li>So may the source of a MERGE, and the subqueries of an UPDATE or a DELETE.
 * </ul>
 *
 * <p>It runs after Spark has determined the states that the query reads, and before it looks them
 * up in its cache.
 */
public final class ReadTargets extends Rule<LogicalPlan> {

  /**
   * @param session the session of the plans, required by Spark but not used
   */
  public ReadTargets(SparkSession session) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    // a write is the root; a transformation would keep the old node, as the tables are equal
    if (plan instanceof V2WriteCommand write) {
      return written(write);
    }
    return plan.transformDown(
        new NodeChange<>(node -> node instanceof V2WriteCommand write ? written(write) : node));
  }

  private static LogicalPlan written(V2WriteCommand write) {
    LogicalPlan told = told(write);
    return told instanceof V2WriteCommand found ? (LogicalPlan) NullPartitions.of(found) : told;
  }

  private static LogicalPlan told(V2WriteCommand write) {
    if (!(write.table() instanceof DataSourceV2Relation target)) {
      return (LogicalPlan) write;
    }
    List<DataSourceV2Relation> read = relations(write.query());
    if (target.table() instanceof IcecombStagedTable staged) {
      staged.read(read.stream().map(each -> (IcecombTable) each.table()).toList());
    }
    if (target.table() instanceof IcecombTable table) {
      for (DataSourceV2Relation each : read) {
        if (isSame(each, target)) {
          return merge(write, target, table, (IcecombTable) each.table());
        }
      }
      if (write instanceof OverwriteByExpression || write instanceof OverwritePartitionsDynamic) {
        return (LogicalPlan)
            write.withNewTable(over(target, table.writtenFrom(own(write.query(), table))));
      }
    }
    if (target.table() instanceof RowLevelOperationTable changed
        && changed.table() instanceof IcecombTable table
        && changed.operation() instanceof RowLevelChange change) {
      change.read(own(write.query(), table));
      return CarriedLineage.withTableItself(write);
    }
    return (LogicalPlan) write;
  }

  /** The reads of a written table in its query, including stored rows. */
  private static List<QueriedTable> own(LogicalPlan query, IcecombTable table) {
    List<QueriedTable> found = new ArrayList<>();
    RepeatableRows.visit(
        query,
        node -> {
          if (node instanceof DataSourceV2Relation each
              && each.table() instanceof IcecombTable source
              && source.uuid().equals(table.uuid())) {
            found.add(
                new QueriedTable(
                    source.readFor(table.handle()), each.options().asCaseSensitiveMap()));
          } else if (node instanceof LogicalRDD rows && rows.rdd() instanceof KeptRows kept) {
            found.addAll(own(kept.read(), table));
          }
        });
    return found;
  }

  private static LogicalPlan merge(
      V2WriteCommand write, DataSourceV2Relation target, IcecombTable table, IcecombTable read) {
    MissingRows missing = new MissingRows(read.reference());
    LogicalPlan query =
        write
            .query()
            .transformDown(
                new NodeChange<>(
                    node ->
                        node instanceof DataSourceV2Relation relation && isSame(relation, target)
                            ? over(relation, read.readFor(missing))
                            : node));
    return (LogicalPlan)
        ((V2WriteCommand) write.withNewQuery(query))
            .withNewTable(
                over(target, table.writtenFor(missing, own(write.query(), table))));
  }

  /** Whether both are one relation: Spark gives the columns of any other relation other ids. */
  private static boolean isSame(DataSourceV2Relation one, DataSourceV2Relation other) {
    return one.table() instanceof IcecombTable
        && !one.outputSet().intersect(other.outputSet()).isEmpty();
  }

  static DataSourceV2Relation over(DataSourceV2Relation relation, Table table) {
    return over(relation, table, relation.output());
  }

  /** A relation with other columns, given as a sequence of attributes. */
  static DataSourceV2Relation over(DataSourceV2Relation relation, Table table, Object columns) {
    Object[] members = members(relation);
    members[0] = table;
    members[1] = columns;
    return (DataSourceV2Relation) (Object) relation.makeCopy(members);
  }

  /** The members of a node, for a copy with others. */
  static Object[] members(Product node) {
    Object[] members = new Object[node.productArity()];
    for (int i = 0; i < members.length; i++) {
      members[i] = node.productElement(i);
    }
    return members;
  }

  /** The icecomb tables that a query reads, including its subqueries. */
  private static List<DataSourceV2Relation> relations(LogicalPlan query) {
    List<DataSourceV2Relation> found = new ArrayList<>();
    RepeatableRows.visit(
        query,
        node -> {
          if (node instanceof DataSourceV2Relation relation
              && relation.table() instanceof IcecombTable) {
            found.add(relation);
          }
        });
    return found;
  }
}
