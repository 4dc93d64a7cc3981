package org.icecomb.spark.source;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MetadataAttribute;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.InsertAction;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.UpdateAction;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.DataTypes;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.NodeChange;
import org.icecomb.spark.read.ChangeScan;
import org.icecomb.spark.read.MetadataColumns;
import org.icecomb.spark.statement.CommandPlan;
import scala.collection.JavaConverters;

/**
 * A rule by which UPDATE, DELETE and MERGE carry row lineage (specification, "Row Lineage") on a
 * Spark that does not pass on metadata columns: it becomes columns of the changed table, behind its
 * own, to which the statement assigns values.
 *
 * <ul>
 *   <li>Rows that only move keep both, as Spark keeps all columns of theirs.
 *   <li>Changed rows keep their id; the commit gives them its sequence number.
 *   <li>Inserted rows get both from the commit.
 * </ul>
 *
 * <p>It runs after Spark has resolved and aligned the assignments of all columns, and before it
 * plans the statement. {@link ReadTargets} takes the columns away from what the plan says of the
 * table besides, which Spark compares with cached tables.
 */
public final class CarriedLineage extends Rule<LogicalPlan> {

  /**
   * @param session the session of the plans, required by Spark but not used
   */
  public CarriedLineage(SparkSession session) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(
        new NodeChange<>(node -> node.resolved() ? carrying(node) : node));
  }

  private static LogicalPlan carrying(LogicalPlan node) {
    checkNames(node);
    if (node instanceof UpdateTable update && update.aligned()) {
      Target target = Target.of(update.table(), true);
      return target == null
          ? node
          : update.copy(
              target.plan(),
              target.with(update.assignments(), target.rowId()),
              update.condition());
    }
    if (node instanceof MergeIntoTable merge && merge.aligned() && changesRows(merge)) {
      Target target = Target.of(merge.targetTable(), true);
      return target == null ? node : target.merging(merge);
    }
    if (node instanceof DeleteFromTable delete
        && !delete.condition().equals(Literal$.MODULE$.TrueLiteral())) {
      Target target = Target.of(delete.table(), false);
      return target == null ? node : delete.copy(target.plan(), delete.condition());
    }
    return node;
  }

  /**
   * Refuses a statement that names metadata columns of a table whose rows it moves: Spark
   * would write them as columns of the rows, and ends in an internal error.
   */
  private static void checkNames(LogicalPlan node) {
    boolean changes = node instanceof UpdateTable || node instanceof MergeIntoTable;
    if ((changes || node instanceof DeleteFromTable)
        && EliminateSubqueryAliases.apply(JavaConverters.seqAsJavaList(node.children()).get(0))
            instanceof DataSourceV2Relation relation
        && relation.table() instanceof IcecombTable table
        && namesMetadata(relation)
        && (changes || table.deletesByRewriting(relation.options()))) {
      throw ChangeScan.namesMetadata(table.name());
    }
  }

  private static boolean namesMetadata(DataSourceV2Relation relation) {
    return JavaConverters.seqAsJavaList(relation.output()).stream()
        .anyMatch(each -> MetadataAttribute.isValid(each.metadata()));
  }

  /** Whether it does more than insert rows, which Spark plans as an append. */
  private static boolean changesRows(MergeIntoTable merge) {
    return !merge.matchedActions().isEmpty() || !merge.notMatchedBySourceActions().isEmpty();
  }

  /**
   * What a write says of the table whose rows a statement changes, as it is for all others.
   *
   * @param write the write of a statement that may carry lineage
   */
  static LogicalPlan withTableItself(V2WriteCommand write) {
    LogicalPlan plan = (LogicalPlan) write;
    Object[] members = ReadTargets.members(plan);
    for (int i = 1; i < members.length; i++) {
      if (members[i] instanceof DataSourceV2Relation relation
          && relation.table() instanceof IcecombTable table
          && table.carriesLineage()) {
        List<AttributeReference> columns = new ArrayList<>();
        for (AttributeReference each : JavaConverters.seqAsJavaList(relation.output())) {
          if (!MetadataColumns.isLineage(each.name())) {
            columns.add(each);
          }
        }
        members[i] = ReadTargets.over(relation, table.withoutLineage(), CommandPlan.list(columns));
        return (LogicalPlan) (Object) plan.makeCopy(members);
      }
    }
    return plan;
  }

  /**
   * The changed table.
   *
   * @param plan its plan, with the columns of row lineage
   */
  private record Target(LogicalPlan plan, Attribute rowId, Attribute lastUpdated) {

    /**
     * @param moves whether the statement certainly moves rows: then the planner also refuses a
     *     table whose own columns hide those of lineage
     * @return null if the rows have no lineage, or are not moved
     */
    static Target of(LogicalPlan named, boolean moves) {
      if (!(EliminateSubqueryAliases.apply(named) instanceof DataSourceV2Relation relation)
          || !(relation.table() instanceof IcecombTable table)
          || !table.hasLineage()) {
        return null;
      }
      List<AttributeReference> columns =
          new ArrayList<>(JavaConverters.seqAsJavaList(relation.output()));
      if (!moves && columns.stream().anyMatch(each -> MetadataColumns.isLineage(each.name()))) {
        return null;
      }
      AttributeReference rowId = attribute(MetadataColumns.ROW_ID);
      AttributeReference lastUpdated = attribute(MetadataColumns.LAST_UPDATED);
      columns.addAll(List.of(rowId, lastUpdated));
      DataSourceV2Relation carrying =
          ReadTargets.over(relation, table.carryingLineage(), CommandPlan.list(columns));
      return new Target(replaced(named, carrying), rowId, lastUpdated);
    }

    private static AttributeReference attribute(String name) {
      return DataTypeUtils.toAttribute(DataTypes.createStructField(name, DataTypes.LongType, true));
    }

    private static LogicalPlan replaced(LogicalPlan plan, DataSourceV2Relation relation) {
      return plan instanceof DataSourceV2Relation
          ? relation
          : plan.mapChildren(child -> replaced(child, relation));
    }

    /**
     * @param id the id of the rows
     */
    scala.collection.immutable.List<Assignment> with(
        scala.collection.Seq<Assignment> assignments, Expression id) {
      List<Assignment> all = new ArrayList<>(JavaConverters.seqAsJavaList(assignments));
      all.add(new Assignment(rowId, id));
      all.add(new Assignment(lastUpdated, nothing()));
      return CommandPlan.list(all);
    }

    /** The statement with assignments in its actions; copied by members, which Spark adds to. */
    LogicalPlan merging(MergeIntoTable merge) {
      Object[] members = ReadTargets.members(merge);
      members[0] = plan;
      for (int i = 1; i < members.length; i++) {
        if (members[i] instanceof scala.collection.Seq<?> actions) {
          members[i] =
              CommandPlan.list(
                  JavaConverters.seqAsJavaList(actions).stream().map(this::action).toList());
        }
      }
      return (LogicalPlan) (Object) merge.makeCopy(members);
    }

    private Object action(Object action) {
      if (action instanceof UpdateAction update) {
        return copy(update, with(update.assignments(), rowId));
      }
      if (action instanceof InsertAction insert) {
        return copy(insert, with(insert.assignments(), nothing()));
      }
      return action;
    }

    private static Object copy(Expression action, Object assignments) {
      Object[] members = ReadTargets.members(action);
      members[1] = assignments;
      return action.makeCopy(members);
    }

    private static Expression nothing() {
      return new Literal(null, DataTypes.LongType);
    }
  }
}
