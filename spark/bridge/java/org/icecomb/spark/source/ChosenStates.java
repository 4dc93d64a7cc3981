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
import org.icecomb.spark.NodeChange;
import org.icecomb.spark.PinnedTable;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Schemas;
import scala.collection.JavaConverters;

/**
 * A rule that loads the current state of a table if an option, or a name below the table's, selects
 * one of its states.
 *
 * <p>Since 4.1 Spark compares cached relations by name only: an option would select among the
 * states of a cached table, or the cached rows of an option would be used for the table. Cached
 * rows of such a relation are used only if nothing has changed since.
 *
 * <p>It runs after Spark has determined the states that a query reads, and before {@link
 * ReadTargets}.
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
   * @param session the session of the plans, required by Spark but not used
   */
  public ChosenStates(SparkSession session) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    // a query sees one state of each table
    Map<List<Object>, PinnedTable> now = new HashMap<>();
    return (LogicalPlan)
        plan.transformWithSubqueries(
            new NodeChange<LogicalPlan>(
                node ->
                    node instanceof DataSourceV2Relation relation && !chooser(relation).isEmpty()
                        ? current(relation, now)
                        : node));
  }

  /** The selection of the state that is read; empty for the table's current one. */
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

  /** Checks that the columns with which the query was analyzed have not changed. */
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
            "REFRESH TABLE " + before.name() + ", or create a new DataFrame.");
      }
    }
  }
}
