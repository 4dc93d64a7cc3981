package org.icecomb.spark.statement;

import java.util.Map;
import java.util.function.Predicate;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.expressions.Literal$;
import org.apache.spark.sql.catalyst.plans.logical.DeleteFromTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableLocation;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.rows.RowsTable;
import scala.collection.JavaConverters;

/**
 * A rule that refuses statements that do not apply to Iceberg tables, with a hint that Spark's own
 * error would lack; and a DELETE whose options select other rows. ANALYZE TABLE becomes a command
 * of its own. Tables of other catalogs, and Hive tables in the session catalog, are left to Spark.
 */
public final class RefusedStatements extends Rule<LogicalPlan> {

  /** A refused statement; {@code %s} is the name of its table or namespace. */
  private record Refusal(Predicate<LogicalPlan> when, String statement, String hint) {

    Refusal(String statement, String hint) {
      this(plan -> true, statement, hint);
    }

    RuntimeException about(String name) {
      return SparkErrors.unsupported(statement.formatted(name), hint.formatted(name));
    }
  }

  private static final String NO_ENTRIES =
      ": partitions of an Iceberg table are what its rows say, and have no entries of their own";
  private static final String NOTHING_TO_FIND =
      ": an Iceberg table knows its files, no folder is listed to find them";
  private static final String FILES_OF_OTHERS =
      "Nothing is to be repaired; files that others wrote are taken in by CALL system.add_files.";
  private static final String NO_ROWS = ": what describes a table has no statistics of its own";
  private static final String OF_ROWS = "Name the table itself, which %1$s is about.";
  private static final String PARTITIONS = "SELECT * FROM %1$s.partitions";
  private static final String DELETE = "DELETE FROM %1$s WHERE …, which drops whole files where it can.";
  private static final String NO_INDEX = ": Iceberg tables have no indexes";
  private static final String INSTEAD_OF_INDEX =
      "ALTER TABLE %1$s WRITE ORDERED BY … keeps values together, so that files are left out; Bloom "
          + "filters are the property write.parquet.bloom-filter-enabled.column.…";
  private static final String NO_SERDE = ": files of an Iceberg table are read without a SerDe";

  private static final Map<String, Refusal> REFUSALS =
      Map.ofEntries(
          Map.entry("ShowPartitions", new Refusal("SHOW PARTITIONS %s" + NO_ENTRIES, PARTITIONS)),
          Map.entry(
              "ShowTablePartition",
              new Refusal("SHOW TABLE EXTENDED … PARTITION of %s" + NO_ENTRIES, PARTITIONS)),
          Map.entry(
              "DescribeTablePartition",
              new Refusal("DESCRIBE %s PARTITION" + NO_ENTRIES, PARTITIONS)),
          Map.entry(
              "DescribeRelation",
              new Refusal(
                  // the partition, which the class no longer has in Spark 4.3
                  plan ->
                      plan.productElement(1) instanceof scala.collection.Map<?, ?> partition
                          && partition.nonEmpty(),
                  "DESCRIBE %s PARTITION" + NO_ENTRIES,
                  PARTITIONS)),
          Map.entry(
              "AddPartitions",
              new Refusal(
                  "ALTER TABLE %s ADD PARTITION" + NO_ENTRIES,
                  "INSERT INTO %1$s makes them; files that are there already are taken in by CALL "
                      + "system.add_files; a partition field is ADD PARTITION FIELD.")),
          Map.entry(
              "DropPartitions", new Refusal("ALTER TABLE %s DROP PARTITION" + NO_ENTRIES, DELETE)),
          Map.entry(
              "TruncatePartition", new Refusal("TRUNCATE TABLE %s PARTITION" + NO_ENTRIES, DELETE)),
          Map.entry(
              "RenamePartitions",
              new Refusal(
                  "ALTER TABLE %s PARTITION … RENAME" + NO_ENTRIES, "UPDATE %1$s SET … WHERE …")),
          Map.entry(
              "SetTableLocation",
              new Refusal(
                  plan -> ((SetTableLocation) plan).partitionSpec().isDefined(),
                  "ALTER TABLE %s PARTITION … SET LOCATION" + NO_ENTRIES,
                  "ALTER TABLE %1$s SET LOCATION is for the whole table; files that are elsewhere are "
                      + "taken in by CALL system.add_files.")),
          Map.entry(
              "RecoverPartitions",
              new Refusal("ALTER TABLE %s RECOVER PARTITIONS" + NOTHING_TO_FIND, FILES_OF_OTHERS)),
          Map.entry(
              "RepairTable",
              new Refusal("MSCK REPAIR TABLE %s" + NOTHING_TO_FIND, FILES_OF_OTHERS)),
          Map.entry(
              "LoadData",
              new Refusal(
                  "LOAD DATA INTO %s: files are not moved into an Iceberg table",
                  "CALL system.add_files takes Parquet, ORC and Avro files in where they are; INSERT INTO "
                      + "%1$s SELECT * FROM csv.`path` rewrites others.")),
          Map.entry("AnalyzeTable", new Refusal("ANALYZE TABLE %s" + NO_ROWS, OF_ROWS)),
          Map.entry("AnalyzeColumn", new Refusal("ANALYZE TABLE %s" + NO_ROWS, OF_ROWS)),
          Map.entry(
              "SetTableSerDeProperties",
              new Refusal(
                  "ALTER TABLE %s SET SERDE" + NO_SERDE,
                  "ALTER TABLE %1$s SET TBLPROPERTIES: those that write.… begins say how files are written.")),
          Map.entry(
              "ShowCreateTable",
              new Refusal(
                  plan -> ((ShowCreateTable) plan).asSerde(),
                  "SHOW CREATE TABLE %s AS SERDE" + NO_SERDE,
                  "SHOW CREATE TABLE %1$s")),
          Map.entry(
              "CreateIndex", new Refusal("CREATE INDEX ON %s" + NO_INDEX, INSTEAD_OF_INDEX)),
          Map.entry("DropIndex", new Refusal("DROP INDEX ON %s" + NO_INDEX, INSTEAD_OF_INDEX)));

  /**
   * @param session the session of the plans, required by Spark but not used
   */
  public RefusedStatements(SparkSession session) {}

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    LogicalPlan analyze = AnalyzeStatement.command(plan);
    if (analyze != null) {
      return analyze;
    }
    Refusal refusal = REFUSALS.get(plan.getClass().getSimpleName());
    if (refusal != null && refusal.when().test(plan) && plan.children().nonEmpty()) {
      String name = ours(plan.children().head());
      if (name != null) {
        throw refusal.about(name);
      }
    }
    if (plan instanceof DeleteFromTable delete
        && delete.condition().equals(Literal$.MODULE$.TrueLiteral())
        && EliminateSubqueryAliases.apply(delete.table()) instanceof DataSourceV2Relation relation
        && relation.table() instanceof IcecombTable table) {
      table.checkEmptied(relation.options());
    }
    return plan;
  }

  /** The name of an icecomb table or namespace; null for others. */
  private static String ours(LogicalPlan about) {
    if (about instanceof ResolvedTable found
        && (found.table() instanceof IcecombTable || found.table() instanceof RowsTable)) {
      return found.catalog().name() + "." + found.identifier();
    }
    if (about instanceof ResolvedNamespace found
        && found.catalog() instanceof StatementCatalog catalog
        && catalog.keepsViews()) {
      return catalog.name()
          + "."
          + String.join(".", JavaConverters.seqAsJavaList(found.namespace()));
    }
    return null;
  }
}
