package org.icecomb.spark.source;

import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.catalyst.expressions.codegen.ExprCode;
import org.apache.spark.sql.types.DataType;
import org.icecomb.spark.statement.CommandPlan;
import scala.Function1;
import scala.collection.immutable.IndexedSeq;

/** A condition that is never resolved, so that Spark waits for {@link NamedMetadata}. */
final class HeldCondition extends Expression {

  private final Expression condition;

  HeldCondition(Expression condition) {
    this.condition = condition;
  }

  Expression condition() {
    return condition;
  }

  @Override
  public scala.collection.immutable.List<Expression> children() {
    return CommandPlan.list(List.of(condition));
  }

  @Override
  public Expression mapChildren(Function1<Expression, Expression> change) {
    return with(change.apply(condition));
  }

  @Override
  public Expression withNewChildrenInternal(IndexedSeq<Expression> children) {
    return with(children.apply(0));
  }

  private Expression with(Expression other) {
    return other == condition ? this : new HeldCondition(other);
  }

  @Override
  public boolean nullable() {
    return true;
  }

  @Override
  public boolean resolved() {
    return false;
  }

  @Override
  public DataType dataType() {
    return condition.dataType();
  }

  @Override
  public Object eval(InternalRow row) {
    throw evaluated();
  }

  @Override
  public ExprCode doGenCode(CodegenContext context, ExprCode code) {
    throw evaluated();
  }

  private IllegalStateException evaluated() {
    return new IllegalStateException("A held condition is evaluated: " + condition);
  }

  /** Overridden because Spark would otherwise guess the constructor for copies. */
  @Override
  public Expression makeCopy(Object[] members) {
    return new HeldCondition((Expression) members[0]);
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return condition;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof HeldCondition;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof HeldCondition held && condition.equals(held.condition);
  }

  @Override
  public int hashCode() {
    return condition.hashCode();
  }
}
