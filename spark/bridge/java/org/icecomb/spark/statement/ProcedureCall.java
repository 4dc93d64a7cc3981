package org.icecomb.spark.statement;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedArgumentExpression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.icecomb.spark.SparkErrors;
import scala.Function1;
import scala.Option;
import scala.collection.JavaConverters;
import scala.collection.immutable.List$;

/**
 * A parsed CALL. Spark resolves the arguments, which are the columns of a plan below; then {@link
 * ProcedureCalls} converts it to a command.
 */
public final class ProcedureCall extends LogicalPlan {

  private final List<String> procedure;
  private final List<String> names;
  private final LogicalPlan arguments;

  private ProcedureCall(List<String> procedure, List<String> names, LogicalPlan arguments) {
    this.procedure = procedure;
    this.names = names;
    this.arguments = arguments;
  }

  /** The call for an expression in Spark's grammar. */
  static ProcedureCall of(Expression expression) {
    if (!(expression instanceof UnresolvedFunction function)
        || function.isDistinct()
        || String.valueOf(function.ignoreNulls()).equals("true") // an Option in newer Sparks
        || function.filter().isDefined()) {
      throw SparkErrors.unsupported(
          "CALL takes the name of a procedure and its arguments",
          "Call it as CALL catalog.system.procedure(name => value, …).");
    }
    List<String> names = new ArrayList<>();
    List<NamedExpression> values = new ArrayList<>();
    for (Expression argument : JavaConverters.seqAsJavaList(function.arguments())) {
      boolean named = argument instanceof NamedArgumentExpression;
      names.add(named ? ((NamedArgumentExpression) argument).key() : null);
      values.add(column(named ? ((NamedArgumentExpression) argument).value() : argument));
    }
    return new ProcedureCall(
        List.copyOf(JavaConverters.seqAsJavaList(function.nameParts())),
        names,
        new Project(CommandPlan.list(values), new OneRowRelation()));
  }

  static Alias column(Expression value) {
    return new Alias(
        value,
        "argument",
        NamedExpression.newExprId(),
        List$.MODULE$.empty(),
        Option.empty(),
        List$.MODULE$.empty());
  }

  /** The name, of at least one part. */
  List<String> procedure() {
    return procedure;
  }

  /** The names of the arguments; null of those by position. */
  List<String> names() {
    return names;
  }

  /** A plan of one row whose columns are the arguments. */
  LogicalPlan arguments() {
    return arguments;
  }

  @Override
  public scala.collection.immutable.List<Attribute> output() {
    return List$.MODULE$.empty();
  }

  @Override
  public scala.collection.immutable.List<LogicalPlan> children() {
    return CommandPlan.list(List.of(arguments));
  }

  @Override
  public LogicalPlan mapChildren(Function1<LogicalPlan, LogicalPlan> change) {
    return with(change.apply(arguments));
  }

  private LogicalPlan with(LogicalPlan child) {
    return child == arguments ? this : new ProcedureCall(procedure, names, child);
  }

  // Seq is another class in Scala 2.12 than in 2.13
  public LogicalPlan withNewChildrenInternal(
      scala.collection.immutable.IndexedSeq<LogicalPlan> children) {
    return with(children.head());
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.IndexedSeq<LogicalPlan> children) {
    return with(children.head());
  }

  @Override
  public String nodeName() {
    return "Call";
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? String.join(".", procedure) : arguments;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof ProcedureCall;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ProcedureCall that
        && procedure.equals(that.procedure)
        && names.equals(that.names)
        && arguments.equals(that.arguments);
  }

  @Override
  public int hashCode() {
    return 31 * procedure.hashCode() + arguments.hashCode();
  }
}
