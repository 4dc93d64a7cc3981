package org.icecomb.spark.statement;

import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import scala.Enumeration;

/**
 * The plan of a command.
 *
 * <p>Members that Scala would inherit from the traits of a command are written by hand. Methods
 * that take a sequence exist twice: {@code Seq} is another class in Scala 2.12 than in 2.13.
 */
public abstract class CommandPlan extends LogicalPlan implements Command {

  /** The mark by which Spark recognizes commands, which it runs at once. */
  @Override
  public scala.collection.immutable.List<Enumeration.Value> nodePatterns() {
    return list(List.of(TreePattern.COMMAND()));
  }

  // would set the result of the method above, but the trait's initializer is never called
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      scala.collection.immutable.Seq<Enumeration.Value> patterns) {}

  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      scala.collection.Seq<Enumeration.Value> patterns) {}

  @Override
  public final Statistics stats() {
    return Command.super.stats();
  }

  public final LogicalPlan withNewChildrenInternal(
      scala.collection.immutable.IndexedSeq<LogicalPlan> children) {
    return withChildren(scala.collection.JavaConverters.seqAsJavaList(children));
  }

  public final LogicalPlan withNewChildrenInternal(
      scala.collection.IndexedSeq<LogicalPlan> children) {
    return withChildren(scala.collection.JavaConverters.seqAsJavaList(children));
  }

  /** The same command with these children. */
  abstract LogicalPlan withChildren(List<LogicalPlan> children);

  public static <T> scala.collection.immutable.List<T> list(List<T> elements) {
    return scala.collection.JavaConverters.asScalaBuffer(elements).toList();
  }
}
