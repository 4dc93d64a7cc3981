package org.icecomb.spark.source;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.icecomb.spark.statement.CommandPlan;
import scala.Function1;
import scala.collection.JavaConverters;

/**
 * A node above the source of a MERGE, or above the subquery of a condition, until that is resolved,
 * so that Spark does not plan the statement before {@link KeptSources} has decided about it.
 *
 * <p>Methods that take a sequence exist twice: {@code Seq} is another class in Scala 2.12 than in
 * 2.13.
 */
final class SourceToKeep extends LogicalPlan {

  private final LogicalPlan source;
  private final boolean exists;

  /**
   * @param exists whether only the existence of a row matters
   */
  SourceToKeep(LogicalPlan source, boolean exists) {
    this.source = source;
    this.exists = exists;
  }

  LogicalPlan source() {
    return source;
  }

  boolean exists() {
    return exists;
  }

  @Override
  public boolean resolved() {
    return false;
  }

  @Override
  @SuppressWarnings({"unchecked", "rawtypes"})
  public scala.collection.immutable.List<Attribute> output() {
    return (scala.collection.immutable.List) source.output().toList();
  }

  @Override
  public scala.collection.immutable.List<LogicalPlan> children() {
    return CommandPlan.list(List.of(source));
  }

  @Override
  public LogicalPlan mapChildren(Function1<LogicalPlan, LogicalPlan> change) {
    return with(change.apply(source));
  }

  public LogicalPlan withNewChildrenInternal(
      scala.collection.immutable.IndexedSeq<LogicalPlan> children) {
    return with(JavaConverters.seqAsJavaList(children).get(0));
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.IndexedSeq<LogicalPlan> children) {
    return with(JavaConverters.seqAsJavaList(children).get(0));
  }

  private LogicalPlan with(LogicalPlan other) {
    return other == source ? this : new SourceToKeep(other, exists);
  }

  /** Overridden because Spark would otherwise guess the constructor for copies. */
  @Override
  public LogicalPlan makeCopy(Object[] members) {
    return new SourceToKeep((LogicalPlan) members[0], exists);
  }

  @Override
  public LogicalPlan clone() {
    return new SourceToKeep(source.clone(), exists);
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return source;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof SourceToKeep;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SourceToKeep marked
        && source.equals(marked.source)
        && exists == marked.exists;
  }

  @Override
  public int hashCode() {
    return source.hashCode();
  }
}
