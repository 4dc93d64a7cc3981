package org.icecomb.spark.source;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.In;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.plans.logical.V2WriteCommand;
import org.apache.spark.sql.catalyst.plans.logical.WithCTE;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;
import scala.collection.JavaConverters;
import scala.collection.immutable.List$;

/**
 * Partitions of migrated tables whose column has no value. Hive and Spark keep the empty text, and
 * the text {@code __HIVE_DEFAULT_PARTITION__}, in the partition of null; so a job that writes them
 * goes on to write null, and replaces the rows that it wrote before.
 *
 * <p>The rule refuses a PARTITION clause with one of them, as Spark does for its own tables.
 */
public final class NullPartitions extends Rule<LogicalPlan> {

  private static final List<String> TEXTS = List.of("", "__HIVE_DEFAULT_PARTITION__");

  /**
   * @param session the session of the plans, required by Spark but not used
   */
  public NullPartitions(SparkSession session) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    check(plan);
    return plan;
  }

  private static void check(LogicalPlan plan) {
    if (plan instanceof InsertIntoStatement insert
        && insert.table() instanceof DataSourceV2Relation relation
        && relation.table() instanceof IcecombTable table
        && table.overwriteMode() != null) {
      JavaConverters.mapAsJavaMap(insert.partitionSpec())
          .forEach(
              (column, value) -> {
                // a list that cannot hold null does not look for it either
                if (value.isDefined() && TEXTS.stream().anyMatch(each -> each.equals(value.get()))) {
                  throw SparkErrors.unsupported(
                      "PARTITION (" + column + " = '" + value.get() + "') of " + table.name()
                          + ": Hive and Spark keep this text in the partition of null",
                      "Say " + column + " = NULL.");
                }
              });
    } else if (plan instanceof Union || plan instanceof WithCTE) {
      JavaConverters.seqAsJavaList(plan.children()).forEach(NullPartitions::check);
    }
  }

  /** The write, with null where a partition column of a migrated table would get such a text. */
  static V2WriteCommand of(V2WriteCommand write) {
    if (!(write.table() instanceof DataSourceV2Relation target)
        || !(target.table() instanceof IcecombTable table)
        || table.overwriteMode() == null) {
      return write;
    }
    Set<String> partitions = texts(table, target);
    List<NamedExpression> columns = new ArrayList<>();
    boolean any = false;
    for (Attribute each : JavaConverters.seqAsJavaList(write.query().output())) {
      boolean may = partitions.contains(each.name()) && each.dataType() instanceof StringType;
      columns.add(may ? orNull(each) : each);
      any |= may;
    }
    return any
        ? (V2WriteCommand)
            write.withNewQuery(new Project(CommandPlan.list(columns), write.query()))
        : write;
  }

  /** The columns that partitions are made of, which may be null. */
  private static Set<String> texts(IcecombTable table, DataSourceV2Relation target) {
    Set<String> found = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    for (Transform field : table.partitioning()) {
      if (field.name().equals("identity")) {
        found.add(String.join(".", field.references()[0].fieldNames()));
      }
    }
    JavaConverters.seqAsJavaList(target.output()).stream()
        .filter(each -> !each.nullable())
        .forEach(each -> found.remove(each.name()));
    return found;
  }

  private static NamedExpression orNull(Attribute column) {
    List<Expression> texts = new ArrayList<>();
    for (String each : TEXTS) {
      texts.add(new Literal(UTF8String.fromString(each), column.dataType()));
    }
    return new Alias(
        new If(
            new In(column, CommandPlan.list(texts)),
            new Literal(null, column.dataType()),
            column),
        column.name(),
        NamedExpression.newExprId(),
        List$.MODULE$.empty(),
        Option.empty(),
        List$.MODULE$.empty());
  }
}
