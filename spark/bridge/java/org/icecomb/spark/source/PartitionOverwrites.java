package org.icecomb.spark.source;

import java.util.Collections;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.WeakHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OverwriteByExpression;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.internal.SQLConf;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.NodeChange;
import scala.collection.JavaConverters;

/**
 * A rule by which INSERT OVERWRITE and {@code insertInto} replace the rows of a table that was
 * migrated as they did before, see the property {@code icecomb.partition-overwrite-mode}.
 *
 * <p>Of Hive's tables Spark always replaced the partitions that got rows, and of these and its own
 * a partition that the statement named, also by no rows. For other tables it has one setting, which
 * replaces the whole table by default.
 *
 * <p>It runs after Spark has found the table, and before it decides what the statement replaces,
 * which Spark's own rule still does. REPLACE WHERE and {@code writeTo} are not changed: they did not
 * exist for the tables.
 */
public final class PartitionOverwrites extends Rule<LogicalPlan> {

  private static final String MODE = SQLConf.PARTITION_OVERWRITE_MODE().key();
  private static final String OPTION = "overwrite-mode";
  private static final String STATIC = "static";
  private static final String DYNAMIC = "dynamic";

  private static final Set<SparkSession> SESSIONS =
      Collections.synchronizedSet(Collections.newSetFromMap(new WeakHashMap<>()));

  private final SparkSession session;

  public PartitionOverwrites(SparkSession session) {
    this.session = session;
    SESSIONS.add(session);
  }

  /**
   * Whether the current session leaves it open which rows a full overwrite of a table is to
   * replace: it has no session extension, so this rule could not tell.
   */
  public static boolean areOpen(IcecombTable table) {
    SparkSession session = SparkSession.active();
    return DYNAMIC.equals(table.overwriteMode())
        && table.partitioning().length > 0
        && !SESSIONS.contains(session)
        && !isChosen(session);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    if (isOverwrite(plan)) {
      return overwritten(plan);
    }
    // FROM … INSERT … INSERT …, and WITH
    if (!(plan instanceof Union || plan instanceof WithCTE)) {
      return plan;
    }
    return plan.transformDown(
        new NodeChange<>(node -> isOverwrite(node) ? overwritten(node) : node));
  }

  private static boolean isOverwrite(LogicalPlan node) {
    if (node instanceof InsertIntoStatement insert) {
      return insert.overwrite() && isMigrated(insert.table());
    }
    // what `insertInto` is, since Spark 4, in a session catalog; REPLACE WHERE comes from a text
    return node instanceof OverwriteByExpression write
        && write.table() instanceof LogicalPlan table
        && isMigrated(table)
        && !write.isByName()
        && write.deleteExpr().equals(Literal.TrueLiteral())
        && write.origin().line().isEmpty()
        && !write.writeOptions().contains(OPTION);
  }

  private static boolean isMigrated(LogicalPlan target) {
    return target instanceof DataSourceV2Relation relation
        && relation.table() instanceof IcecombTable table
        && table.overwriteMode() != null
        && !relation.options().containsKey(OPTION);
  }

  private LogicalPlan overwritten(LogicalPlan node) {
    if (node instanceof InsertIntoStatement insert) {
      IcecombTable table = (IcecombTable) ((DataSourceV2Relation) insert.table()).table();
      SQLConf conf = SQLConf.get().clone();
      conf.setConfString(MODE, namesPartition(insert, table) ? STATIC : mode(table, conf));
      Rule<LogicalPlan> sparks = session.sessionState().analyzer().ResolveInsertInto();
      return SQLConf.withExistingConf(
          conf,() -> sparks.apply(insert));
    }
    OverwriteByExpression write = (OverwriteByExpression) node;
    IcecombTable table = (IcecombTable) ((DataSourceV2Relation) write.table()).table();
    if (table.partitioning().length == 0 || mode(table, SQLConf.get()).equals(STATIC)) {
      return write;
    }
    Object[] members = ReadTargets.members(write);
    members[3] = write.writeOptions().updated(OPTION, DYNAMIC);
    return write.makeCopy(members);
  }

  private String mode(IcecombTable table, SQLConf conf) {
    return table.overwriteMode().equals(DYNAMIC) && !isChosen(session)
        ? DYNAMIC
        : conf.getConfString(MODE, STATIC).toLowerCase(Locale.ROOT);
  }

  /**
   * Whether the session itself sets the mode: that of the application says nothing about Hive's
   * tables, which have always ignored it.
   */
  private static boolean isChosen(SparkSession session) {
    String set = session.conf().get(MODE, null);
    return set != null
        && !set.equalsIgnoreCase(session.sparkContext().conf().get(MODE, null));
  }

  /** Whether a statement gives a value to each partition column, or there is none. */
  private static boolean namesPartition(InsertIntoStatement insert, IcecombTable table) {
    Set<String> open = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    for (Transform field : table.partitioning()) {
      if (field.name().equals("identity")) {
        open.add(String.join(".", field.references()[0].fieldNames()));
      }
    }
    if (table.partitioning().length > 0 && open.isEmpty()) {
      return false;
    }
    JavaConverters.mapAsJavaMap(insert.partitionSpec())
        .forEach(
            (column, value) -> {
              if (value.isDefined()) {
                open.remove(column);
              }
            });
    return open.isEmpty();
  }
}
