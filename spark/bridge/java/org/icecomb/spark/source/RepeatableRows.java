package org.icecomb.spark.source;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.apache.spark.sql.catalyst.expressions.ApplyFunctionExpression;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.DenseRank;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.Rank;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.WindowExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateFunction;
import org.apache.spark.sql.catalyst.expressions.aggregate.Max;
import org.apache.spark.sql.catalyst.expressions.aggregate.Min;
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationDef;
import org.apache.spark.sql.catalyst.plans.logical.CTERelationRef;
import org.apache.spark.sql.catalyst.plans.logical.Distinct;
import org.apache.spark.sql.catalyst.plans.logical.Except;
import org.apache.spark.sql.catalyst.plans.logical.Expand;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.Intersect;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LateralJoin;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Range;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.RepartitionByExpression;
import org.apache.spark.sql.catalyst.plans.logical.ResolvedHint;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.execution.LogicalRDD;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegralType;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.functions.BoundFunction;
import scala.collection.JavaConverters;

/**
 * A check that a query returns the same rows each time it is executed: it reads icecomb tables,
 * each in one state, or rows that are part of the plan, by steps and functions that do not depend
 * on the order in which rows arrive. Anything unknown is assumed to return different rows.
 */
final class RepeatableRows {

  private static final Set<Class<?>> STEPS =
      Set.of(
          Project.class,
          Filter.class,
          Join.class,
          Aggregate.class,
          Union.class,
          Distinct.class,
          SubqueryAlias.class,
          View.class,
          Sort.class,
          Except.class,
          Intersect.class,
          Expand.class,
          Generate.class,
          Repartition.class,
          RepartitionByExpression.class,
          ResolvedHint.class,
          Window.class,
          LateralJoin.class,
          WithCTE.class,
          CTERelationDef.class);

  /** Aggregates with the same result for any order of the same rows. */
  private static final Set<String> AGGREGATES =
      Set.of(
          "Count",
          "CountIf",
          "BoolAnd",
          "BoolOr",
          "BitAndAgg",
          "BitOrAgg",
          "BitXorAgg",
          "Rank",
          "DenseRank");

  /**
   * The sum of decimals of this precision cannot overflow 38 digits for any feasible number of
   * rows.
   */
  private static final int LARGEST_ADDED = 28;

  private RepeatableRows() {}

  static boolean isRepeatable(LogicalPlan plan) {
    return !refersToQueriesOutside(plan) && isRepeatableInside(plan);
  }

  private static boolean isRepeatableInside(LogicalPlan plan) {
    List<LogicalPlan> children = JavaConverters.seqAsJavaList(plan.children());
    return (children.isEmpty() ? isRepeatableLeaf(plan) : STEPS.contains(plan.getClass()))
        && JavaConverters.seqAsJavaList(plan.expressions()).stream()
            .allMatch(RepeatableRows::isRepeatable)
        && children.stream().allMatch(RepeatableRows::isRepeatableInside);
  }

  /** Whether a step is deterministic, provided that functions are marked correctly. */
  static boolean isRepeatableStep(LogicalPlan plan) {
    return STEPS.contains(plan.getClass()) && !(plan instanceof Window);
  }

  static boolean isKept(LogicalPlan plan) {
    return plan instanceof LogicalRDD relation && relation.rdd() instanceof KeptRows;
  }

  private static boolean isRepeatableLeaf(LogicalPlan leaf) {
    return leaf instanceof LocalRelation
        || leaf instanceof OneRowRelation
        || leaf instanceof Range
        || leaf instanceof CTERelationRef
        || isKept(leaf)
        || leaf instanceof DataSourceV2Relation relation
            && relation.table() instanceof IcecombTable
        || leaf instanceof DataSourceV2ScanRelation scan
            && scan.relation().table() instanceof IcecombTable;
  }

  /** Whether it depends on the enclosing query, and cannot be executed on its own. */
  static boolean refersOutside(LogicalPlan plan) {
    return refersToColumnsOutside(plan) || refersToQueriesOutside(plan);
  }

  private static boolean refersToColumnsOutside(LogicalPlan plan) {
    return JavaConverters.seqAsJavaList(plan.expressions()).stream()
            .anyMatch(RepeatableRows::refersToColumnsOutside)
        || JavaConverters.seqAsJavaList(plan.children()).stream()
            .anyMatch(RepeatableRows::refersToColumnsOutside);
  }

  /**
   * Whether it refers to outer columns; those of a subquery in it are among the subquery's
   * children.
   */
  private static boolean refersToColumnsOutside(Expression expression) {
    return expression instanceof OuterReference
        || JavaConverters.seqAsJavaList(expression.children()).stream()
            .anyMatch(RepeatableRows::refersToColumnsOutside);
  }

  private static boolean refersToQueriesOutside(LogicalPlan plan) {
    Set<Long> named = new HashSet<>();
    Set<Long> defined = new HashSet<>();
    visit(
        plan,
        node -> {
          if (node instanceof CTERelationRef reference) {
            named.add(reference.cteId());
          } else if (node instanceof CTERelationDef definition) {
            defined.add(definition.id());
          }
        });
    return !defined.containsAll(named);
  }

  /** Visits a plan and its descendants, including subqueries. */
  static void visit(LogicalPlan plan, Consumer<LogicalPlan> visitor) {
    visitor.accept(plan);
    JavaConverters.seqAsJavaList(plan.children()).forEach(child -> visit(child, visitor));
    for (Object subquery :
        JavaConverters.seqAsJavaList(((QueryPlan<LogicalPlan>) plan).subqueries())) {
      visit((LogicalPlan) subquery, visitor);
    }
  }

  static boolean isRepeatable(Expression expression) {
    if (!expression.deterministic()
        || expression instanceof UserDefinedExpression
        || expression instanceof ApplyFunctionExpression call
            && !(call.function() instanceof BoundFunction)
        || expression instanceof StaticInvoke call && !isKnown(call.staticObject())
        || expression instanceof Invoke call && !isKnown(call)
        || expression instanceof AggregateFunction function && !isRepeatable(function)
        || expression instanceof WindowExpression window
            && !(window.windowFunction() instanceof Rank)
            && !(window.windowFunction() instanceof DenseRank)
        || isCollated(expression)
        || expression instanceof SubqueryExpression subquery && !isRepeatableInside(subquery.plan())) {
      return false;
    }
    return JavaConverters.seqAsJavaList(expression.children()).stream()
        .allMatch(RepeatableRows::isRepeatable);
  }

  /** Whether a string is collated: any of its equal values may represent a group. */
  private static boolean isCollated(Expression expression) {
    return expression.getClass().getSimpleName().equals("Collate")
        || (expression instanceof NamedExpression || expression instanceof Cast)
            && expression.resolved()
            && expression.dataType().sql().contains(" COLLATE ");
  }

  private static boolean isRepeatable(AggregateFunction function) {
    List<DataType> types =
        JavaConverters.seqAsJavaList(function.children()).stream().map(Expression::dataType).toList();
    if (function instanceof Sum) {
      return types.stream().allMatch(RepeatableRows::isAddedExactly);
    }
    if (function instanceof Max || function instanceof Min) {
      // 0.0 and -0.0 are equal: either may be returned
      return types.stream()
          .noneMatch(each -> each.sql().contains("FLOAT") || each.sql().contains("DOUBLE"));
    }
    return AGGREGATES.contains(function.getClass().getSimpleName());
  }

  /**
   * Whether a sum is independent of the order: sums of floating-point numbers are not, nor is the
   * overflow of large decimals. Averages are not, either: for them, Spark adds up integers and
   * small decimals as floating-point numbers.
   */
  private static boolean isAddedExactly(DataType type) {
    return type instanceof IntegralType
        || type instanceof DecimalType decimal && decimal.precision() <= LARGEST_ADDED;
  }

  private static boolean isKnown(Invoke call) {
    return call.targetObject() instanceof Literal literal
        && literal.value() != null
        && isKnown(literal.value().getClass());
  }

  /**
   * Whether it is Spark's own or icecomb's code; other calls in a plan are functions of other
   * catalogs.
   */
  private static boolean isKnown(Class<?> owner) {
    return owner.getName().startsWith("org.apache.spark.sql.catalyst.")
        || owner.getName().startsWith("org.apache.spark.unsafe.")
        || BoundFunction.class.isAssignableFrom(owner);
  }
}
