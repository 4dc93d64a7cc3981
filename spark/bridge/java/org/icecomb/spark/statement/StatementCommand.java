package org.icecomb.spark.statement;

import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.StructType;
import scala.Enumeration;
import scala.Function1;
import scala.collection.immutable.List$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/**
 * A statement that Spark runs at once and that has no plan of Spark's.
 *
 * <p>What Scala would take from the traits of a command stands here by hand. Methods that take a
 * sequence are there twice: {@code Seq} is another class in Scala 2.12 than in 2.13.
 */
public final class StatementCommand extends LogicalPlan implements LeafRunnableCommand {

  private final String name;
  private final String about;
  private final scala.collection.immutable.List<Attribute> output;
  private final Function<SparkSession, List<Row>> work;

  /**
   * @param name what EXPLAIN calls it
   * @param about what it is done to
   * @param schema its rows
   * @param work does it
   */
  public StatementCommand(
      String name, String about, StructType schema, Function<SparkSession, List<Row>> work) {
    this(name, about, attributes(schema), work);
  }

  private StatementCommand(
      String name,
      String about,
      scala.collection.immutable.List<Attribute> output,
      Function<SparkSession, List<Row>> work) {
    this.name = name;
    this.about = about;
    this.output = output;
    this.work = work;
  }

  /** Spark works on copies, and would make them by a constructor that it guesses. */
  @Override
  public LogicalPlan makeCopy(Object[] members) {
    return clone();
  }

  @Override
  public LogicalPlan clone() {
    return new StatementCommand(name, about, output, work);
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static scala.collection.immutable.List<Attribute> attributes(StructType schema) {
    return (scala.collection.immutable.List) DataTypeUtils.toAttributes(schema).toList();
  }

  public static <T> scala.collection.immutable.List<T> list(List<T> elements) {
    return scala.collection.JavaConverters.asScalaBuffer(elements).toList();
  }

  @Override
  public scala.collection.immutable.List<Row> run(SparkSession session) {
    return list(work.apply(session));
  }

  @Override
  public scala.collection.immutable.List<Attribute> output() {
    return output;
  }

  @Override
  public Map<String, SQLMetric> metrics() {
    return Map$.MODULE$.empty();
  }

  /** By this mark Spark knows commands, which it runs at once. */
  @Override
  public scala.collection.immutable.List<Enumeration.Value> nodePatterns() {
    return list(List.of(TreePattern.COMMAND()));
  }

  // the trait would set what the method above answers: nobody calls its initialiser
  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      scala.collection.immutable.Seq<Enumeration.Value> patterns) {}

  public void org$apache$spark$sql$catalyst$plans$logical$Command$_setter_$nodePatterns_$eq(
      scala.collection.Seq<Enumeration.Value> patterns) {}

  @Override
  public Statistics stats() {
    return LeafRunnableCommand.super.stats();
  }

  @Override
  public scala.collection.immutable.List<LogicalPlan> children() {
    return List$.MODULE$.empty();
  }

  @Override
  public LogicalPlan mapChildren(Function1<LogicalPlan, LogicalPlan> change) {
    return this;
  }

  public LogicalPlan withNewChildrenInternal(
      scala.collection.immutable.IndexedSeq<LogicalPlan> children) {
    return this;
  }

  public LogicalPlan withNewChildrenInternal(scala.collection.IndexedSeq<LogicalPlan> children) {
    return this;
  }

  @Override
  public String nodeName() {
    return name;
  }

  @Override
  public int productArity() {
    return 1;
  }

  @Override
  public Object productElement(int index) {
    return about;
  }

  @Override
  public boolean canEqual(Object other) {
    return other == this;
  }

  @Override
  public boolean equals(Object other) {
    return other == this;
  }

  @Override
  public int hashCode() {
    return System.identityHashCode(this);
  }
}
