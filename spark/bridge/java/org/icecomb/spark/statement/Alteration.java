package org.icecomb.spark.statement;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.plans.logical.AlterTableCommand;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.internal.SQLConf;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.SparkErrors;
import scala.Function1;
import scala.collection.immutable.List$;

/**
 * The plan of an icecomb statement. Spark resolves its table and passes {@link #changes} to the
 * table's catalog, as for every ALTER TABLE.
 */
public final class Alteration extends CommandPlan implements AlterTableCommand {

  private final LogicalPlan table;
  private final String text;

  public Alteration(LogicalPlan table, String text) {
    this.table = table;
    this.text = text;
  }

  @Override
  public LogicalPlan table() {
    return table;
  }

  @Override
  public scala.collection.immutable.List<TableChange> changes() {
    if (!(table instanceof ResolvedTable resolved)
        || !(resolved.table() instanceof IcecombTable)) {
      throw SparkErrors.unsupported(
          "ALTER TABLE … " + text + " is for tables of icecomb's catalogs, and this is none",
          "Give the table's name with its catalog; `icecomb migrate apply` makes a Hive table one; "
              + "Iceberg tables of other catalogs need "
              + "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions");
    }
    return list(List.of(new StatementChange(text, SQLConf.get().caseSensitiveAnalysis())));
  }

  @Override
  public scala.collection.immutable.List<Attribute> output() {
    return List$.MODULE$.empty();
  }

  @Override
  public scala.collection.immutable.List<LogicalPlan> children() {
    return list(List.of(table));
  }

  @Override
  public LogicalPlan mapChildren(Function1<LogicalPlan, LogicalPlan> change) {
    return withNewChildInternal(change.apply(table));
  }

  @Override
  public LogicalPlan withNewChildInternal(LogicalPlan child) {
    return child == table ? this : new Alteration(child, text);
  }

  @Override
  LogicalPlan withChildren(List<LogicalPlan> children) {
    return withNewChildInternal(children.get(0));
  }

  @Override
  public String nodeName() {
    return "AlterIcebergTable";
  }

  @Override
  public int productArity() {
    return 2;
  }

  @Override
  public Object productElement(int index) {
    return index == 0 ? table : text;
  }

  @Override
  public boolean canEqual(Object other) {
    return other instanceof Alteration;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Alteration that && table.equals(that.table) && text.equals(that.text);
  }

  @Override
  public int hashCode() {
    return 31 * table.hashCode() + text.hashCode();
  }
}
