package org.icecomb.spark.statement;

import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.types.DataTypeUtils;
import org.apache.spark.sql.execution.command.LeafRunnableCommand;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.immutable.List$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;

/**
 * A statement that Spark runs at once, without a plan of its own.
 */
public final class StatementCommand extends CommandPlan implements LeafRunnableCommand {

  private final String name;
  private final String about;
  private final scala.collection.immutable.List<Attribute> output;
  private final Function<SparkSession, List<Row>> work;

  /**
   * @param name its name in EXPLAIN
   * @param about its subject, in EXPLAIN
   * @param schema the schema of its rows
   * @param work executes it
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

  /** Overridden because Spark would otherwise guess the constructor for copies. */
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

  @Override
  public scala.collection.immutable.List<LogicalPlan> children() {
    return List$.MODULE$.empty();
  }

  @Override
  public LogicalPlan mapChildren(Function1<LogicalPlan, LogicalPlan> change) {
    return this;
  }

  @Override
  LogicalPlan withChildren(List<LogicalPlan> children) {
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
