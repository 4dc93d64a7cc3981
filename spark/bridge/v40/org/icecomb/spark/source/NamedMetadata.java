package org.icecomb.spark.source;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases$;
import org.apache.spark.sql.catalyst.analysis.NamedRelation;
import org.apache.spark.sql.catalyst.analysis.ResolveRowLevelCommandAssignments$;
import org.apache.spark.sql.catalyst.analysis.RewriteDeleteFromTable$;
import org.apache.spark.sql.catalyst.analysis.RewriteMergeIntoTable$;
import org.apache.spark.sql.catalyst.analysis.RewriteUpdateTable$;
import org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.AttributeReference;
import org.apache.spark.sql.catalyst.expressions.Exists;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.MetadataAttribute;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.logical.Assignment;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.MergeIntoTable;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.ReplaceData;
import org.apache.spark.sql.catalyst.plans.logical.UpdateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.NodeChange;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.read.MetadataColumns;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * A rule that plans UPDATE, DELETE and MERGE which name metadata columns of the table, as {@code
 * _row_id}, wherever a column may be read.
 *
 * <p>Spark's own rules add all metadata columns to the table's output then, and would write them as
 * columns of its rows. So the statement is held until the names are resolved, and Spark plans it
 * here with the table's own columns, while the operation asks for the metadata columns that are
 * named, as it does for those that rows keep when they move.
 */
public final class NamedMetadata extends Rule<LogicalPlan> {

  private final SparkSession session;
  private final boolean holds;

  private NamedMetadata(SparkSession session, boolean holds) {
    this.session = session;
    this.holds = holds;
  }

  /** Adds the rule to sessions: before names are resolved it holds statements, then plans them. */
  public static void resolve(SparkSessionExtensions extensions) {
    extensions.injectHintResolutionRule(session -> new NamedMetadata(session, true));
    extensions.injectResolutionRule(session -> new NamedMetadata(session, false));
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(new NodeChange<>(this::heldOrReleased));
  }

  private LogicalPlan heldOrReleased(LogicalPlan node) {
    Expression condition = condition(node);
    if (condition == null || holds == condition instanceof HeldCondition) {
      return node;
    }
    if (!holds) {
      return released(node, (HeldCondition) condition);
    }
    return names(node.expressions()) ? with(node, condition, new HeldCondition(condition)) : node;
  }

  /** The condition of a statement that changes rows; null if the plan is not one. */
  private static Expression condition(LogicalPlan node) {
    if (node instanceof UpdateTable update) {
      return update.condition().isDefined() ? update.condition().get() : Literal.TrueLiteral();
    }
    if (node instanceof MergeIntoTable merge) {
      return merge.mergeCondition();
    }
    return node instanceof DeleteFromTable delete ? delete.condition() : null;
  }

  private static LogicalPlan with(LogicalPlan node, Expression condition, Expression other) {
    return node instanceof UpdateTable update
        ? update.copy(update.table(), update.assignments(), Option.apply(other))
        : mapped(node, each -> each == condition ? other : each);
  }

  private static boolean names(scala.collection.Seq<Expression> expressions) {
    return JavaConverters.seqAsJavaList(expressions).stream().anyMatch(NamedMetadata::names);
  }

  /** Whether an unresolved expression has a part that may be a metadata column. */
  private static boolean names(Expression expression) {
    return expression instanceof UnresolvedAttribute name
            && JavaConverters.seqAsJavaList(name.nameParts()).stream()
                .anyMatch(MetadataColumns::isNamed)
        || expression instanceof SubqueryExpression subquery && names(subquery.plan())
        || names(expression.children());
  }

  private static boolean names(LogicalPlan plan) {
    return names(plan.expressions())
        || JavaConverters.seqAsJavaList(plan.children()).stream().anyMatch(NamedMetadata::names);
  }

  private LogicalPlan released(LogicalPlan held, HeldCondition condition) {
    LogicalPlan statement = with(held, condition, condition.condition());
    if (!statement.resolved()) {
      return held;
    }
    DataSourceV2Relation target = target(statement);
    if (target == null) {
      return statement;
    }
    Map<ExprId, String> named = named(statement, target);
    if (named.isEmpty()) {
      return statement;
    }
    JavaConverters.seqAsJavaList(statement.expressions())
        .forEach(each -> checkAssigned(each, named, target));
    LogicalPlan aligned = ResolveRowLevelCommandAssignments$.MODULE$.apply(statement);
    DataSourceV2Relation found = target(aligned);
    DataSourceV2Relation reading =
        ReadTargets.over(
            found,
            ((IcecombTable) found.table())
                .naming(named.values().stream().distinct().toList(), statement instanceof UpdateTable));
    Map<String, AttributeReference> columns = new LinkedHashMap<>();
    JavaConverters.seqAsJavaList(reading.metadataOutput())
        .forEach(each -> columns.put(each.name(), (AttributeReference) each));
    Map<ExprId, AttributeReference> bound = new LinkedHashMap<>();
    named.forEach((id, name) -> bound.put(id, columns.get(name)));
    LogicalPlan over = mapped(over(aligned, reading), each -> bound(each, bound));
    List<AttributeReference> outer = bound.values().stream().distinct().toList();
    LogicalPlan planned = mapped(planned(over), each -> withOuter(each, outer));
    return statement instanceof UpdateTable && planned instanceof ReplaceData write
        ? withOutput(write, outer)
        : planned;
  }

  /**
   * An UPDATE that rewrites files, with metadata columns in the output of the table it writes: where
   * its condition has a subquery, Spark reads the table twice, and finds the columns of both reads
   * that the condition names by those of the written table.
   */
  private static LogicalPlan withOutput(ReplaceData write, List<AttributeReference> columns) {
    DataSourceV2Relation table = (DataSourceV2Relation) (Object) write.table();
    List<AttributeReference> output =
        new ArrayList<>(JavaConverters.seqAsJavaList(table.output()));
    output.addAll(columns);
    Object[] members = new Object[table.productArity()];
    for (int i = 0; i < members.length; i++) {
      members[i] = i == 1 ? CommandPlan.list(output) : table.productElement(i);
    }
    return (LogicalPlan)
        (Object) write.withNewTable((NamedRelation) (Object) table.makeCopy(members));
  }

  private static LogicalPlan planned(LogicalPlan statement) {
    if (statement instanceof UpdateTable) {
      return RewriteUpdateTable$.MODULE$.apply(statement);
    }
    return statement instanceof MergeIntoTable
        ? RewriteMergeIntoTable$.MODULE$.apply(statement)
        : RewriteDeleteFromTable$.MODULE$.apply(statement);
  }

  private static void checkAssigned(
      Expression part, Map<ExprId, String> named, DataSourceV2Relation target) {
    if (part instanceof Assignment assignment) {
      for (Attribute column : JavaConverters.seqAsJavaList(assignment.key().references().toSeq())) {
        if (named.containsKey(column.exprId())) {
          throw SparkErrors.unsupported(
              "Cannot assign a value to " + column.name() + " of table " + target.table().name()
                  + ": it is a metadata column",
              "Assign values to the table's own columns only.");
        }
      }
    }
    JavaConverters.seqAsJavaList(part.children())
        .forEach(each -> checkAssigned(each, named, target));
  }

  /** The relation of the icecomb table that a statement changes, or null. */
  private static DataSourceV2Relation target(LogicalPlan statement) {
    LogicalPlan table = JavaConverters.seqAsJavaList(statement.children()).get(0);
    return EliminateSubqueryAliases$.MODULE$.apply(table) instanceof DataSourceV2Relation relation
            && relation.table() instanceof IcecombTable
        ? relation
        : null;
  }

  private LogicalPlan over(LogicalPlan statement, DataSourceV2Relation target) {
    List<LogicalPlan> children =
        new ArrayList<>(JavaConverters.seqAsJavaList(statement.children()));
    children.replaceAll(source -> withMetadata(source, statement));
    children.set(0, target);
    return statement.withNewChildren(CommandPlan.list(children));
  }

  /**
   * The source of a MERGE with its metadata columns that the statement names: Spark's own rule would
   * not find them in the plan of the statement.
   */
  private LogicalPlan withMetadata(LogicalPlan source, LogicalPlan statement) {
    List<NamedExpression> output =
        new ArrayList<>(JavaConverters.seqAsJavaList(source.output()));
    int own = output.size();
    JavaConverters.seqAsJavaList(source.metadataOutput()).stream()
        .filter(each -> statement.references().contains(each) && !source.outputSet().contains(each))
        .forEach(output::add);
    return output.size() == own
        ? source
        : session
            .sessionState()
            .analyzer()
            .AddMetadataColumns()
            .apply(new Project(CommandPlan.list(output), source));
  }

  /**
   * The metadata columns of the changed table in a statement, by their ids in it. Where its schema
   * evolved meanwhile, the table has other ids for them.
   */
  private static Map<ExprId, String> named(LogicalPlan statement, DataSourceV2Relation target) {
    Set<ExprId> others = new HashSet<>();
    JavaConverters.seqAsJavaList(statement.children()).stream()
        .skip(1)
        .flatMap(
            source ->
                Stream.of(source.output(), source.metadataOutput())
                    .flatMap(output -> JavaConverters.seqAsJavaList(output).stream()))
        .forEach(each -> others.add(each.exprId()));
    Set<String> columns = new HashSet<>();
    JavaConverters.seqAsJavaList(target.metadataOutput())
        .forEach(each -> columns.add(each.name()));
    Map<ExprId, String> found = new LinkedHashMap<>();
    mapped(
        statement,
        each ->
            changed(
                each,
                column -> {
                  if (MetadataAttribute.isValid(column.metadata())
                      && columns.contains(column.name())
                      && !others.contains(column.exprId())) {
                    found.put(column.exprId(), column.name());
                  }
                  return column;
                }));
    return found;
  }

  private static Expression bound(Expression part, Map<ExprId, AttributeReference> columns) {
    return changed(part, column -> columns.getOrDefault(column.exprId(), column));
  }

  private static Expression changed(
      Expression part, UnaryOperator<AttributeReference> change) {
    return part.transformUp(
        new NodeChange<>(
            each -> {
              if (each instanceof AttributeReference column) {
                return change.apply(column);
              }
              if (each instanceof OuterReference outer) {
                return outer.e() instanceof AttributeReference column
                    ? new OuterReference(change.apply(column))
                    : outer;
              }
              return each instanceof SubqueryExpression subquery
                  ? (Expression) subquery.withNewPlan(changedOutside(subquery.plan(), change))
                  : each;
            }));
  }

  private static LogicalPlan changedOutside(
      LogicalPlan subquery, UnaryOperator<AttributeReference> change) {
    return (LogicalPlan)
        subquery.transformAllExpressions(
            new NodeChange<>(
                inner ->
                    inner instanceof OuterReference || inner instanceof SubqueryExpression
                        ? changed(inner, change)
                        : inner));
  }

  /**
   * A subquery of Spark's over the source of a MERGE, by which it finds the files with rows to
   * change, with the metadata columns in it as columns from outside.
   */
  private static Expression withOuter(Expression part, List<AttributeReference> columns) {
    if (!(part instanceof Exists exists && exists.plan() instanceof Filter filter)) {
      return part;
    }
    List<Expression> outer = new ArrayList<>(JavaConverters.seqAsJavaList(exists.outerAttrs()));
    int before = outer.size();
    Expression condition =
        filter
            .condition()
            .transformUp(
                new NodeChange<>(
                    each -> {
                      if (!(each instanceof AttributeReference column)
                          || columns.stream()
                              .noneMatch(known -> known.exprId().equals(column.exprId()))) {
                        return each;
                      }
                      outer.add(each);
                      return new OuterReference(column);
                    }));
    return outer.size() == before
        ? part
        : (Expression)
            exists
                .withNewPlan(new Filter(condition, filter.child()))
                .withNewOuterAttrs(CommandPlan.list(outer));
  }

  private static LogicalPlan mapped(
      LogicalPlan node, UnaryOperator<Expression> change) {
    return (LogicalPlan) node.mapExpressions(change::apply);
  }
}
