package org.icecomb.spark.source;

import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.CachedTables;
import org.icecomb.spark.PinnedTable;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Schemas;
import scala.Function1;
import scala.collection.JavaConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Reads what an option, or a name below a table's, chooses among the states that the table has now.
 *
 * <p>Since 4.1 Spark compares what it has cached by names alone: an option would choose among the states
 * that a cached table had, or what is cached of an option would stand for the table. What stays in the
 * cache of such a relation is used where nothing has changed since.
 *
 * <p>It runs when Spark has settled which states a query reads, and before {@link ReadTargets}.
 */
public final class ChosenStates extends Rule<LogicalPlan> {

  private static final List<String> OPTIONS =
      List.of(
          "branch",
          "tag",
          "snapshot-id",
          "as-of-timestamp",
          "start-snapshot-id",
          "end-snapshot-id",
          "start-timestamp",
          "end-timestamp");

  /**
   * @param session whose plans are looked at, as Spark makes its rules; nothing is asked of it
   */
  public ChosenStates(SparkSession session) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    // one query sees one state of a table
    Map<List<Object>, PinnedTable> now = new HashMap<>();
    return (LogicalPlan)
        plan.transformWithSubqueries(
            new AbstractPartialFunction<LogicalPlan, LogicalPlan>() {
              @Override
              public boolean isDefinedAt(LogicalPlan node) {
                return node instanceof DataSourceV2Relation relation && !chooser(relation).isEmpty();
              }

              @Override
              @SuppressWarnings("unchecked")
              public <A extends LogicalPlan, B> B applyOrElse(A node, Function1<A, B> otherwise) {
                return isDefinedAt(node)
                    ? (B) current((DataSourceV2Relation) node, now)
                    : otherwise.apply(node);
              }
            });
  }

  /** What chooses the state that is read; empty where it is the table's own. */
  private static String chooser(DataSourceV2Relation relation) {
    if (!(relation.table() instanceof PinnedTable pinned)
        || !CachedTables.mayStay(relation)
        || relation.catalog().isEmpty()
        || relation.identifier().isEmpty()) {
      return "";
    }
    Map<String, String> found = new TreeMap<>();
    CaseInsensitiveStringMap options = relation.options();
    for (String option : OPTIONS) {
      if (options.containsKey(option)) {
        found.put(option.toLowerCase(Locale.ROOT), options.get(option));
      }
    }
    if (pinned.handle().below()) {
      found.put("name", pinned.name());
    }
    return found.isEmpty() ? "" : ", " + found;
  }

  private static LogicalPlan current(
      DataSourceV2Relation relation, Map<List<Object>, PinnedTable> now) {
    PinnedTable before = (PinnedTable) relation.table();
    PinnedTable after =
        now.computeIfAbsent(
            List.of(relation.catalog().get(), relation.identifier().get()),
            named -> load(relation, before));
    check(relation, before, after);
    return ReadTargets.over(relation, after.chosenBy(chooser(relation)));
  }

  private static PinnedTable load(DataSourceV2Relation relation, PinnedTable before) {
    if (CachedTables.areNone()) {
      return before;
    }
    try {
      Table found = ((TableCatalog) relation.catalog().get()).loadTable(relation.identifier().get());
      return found instanceof PinnedTable pinned ? pinned : before;
    } catch (NoSuchTableException e) {
      throw SparkErrors.unchecked(e);
    }
  }

  /** The query was understood with the columns that Spark had cached. */
  private static void check(DataSourceV2Relation relation, PinnedTable before, PinnedTable after) {
    StructType known = before.handle().schema();
    StructType now = after.handle().schema();
    for (Attribute column : JavaConverters.seqAsJavaList(relation.output())) {
      StructField was = Schemas.find(known, column.name());
      StructField is = Schemas.find(now, column.name());
      boolean same =
          was == null
              || is != null
                  && Schemas.id(was) == Schemas.id(is)
                  && was.dataType().equals(is.dataType());
      if (!same) {
        throw SparkErrors.unsupported(
            "Column " + column.name() + " of table " + before.name() + " was changed since the session"
                + " cached the table, or the DataFrame was made",
            "REFRESH TABLE " + before.name() + ", or make the DataFrame anew");
      }
    }
  }
}
