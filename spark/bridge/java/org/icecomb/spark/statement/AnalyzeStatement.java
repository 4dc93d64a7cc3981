package org.icecomb.spark.statement;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.LoadProcedure;
import org.icecomb.spark.planner.Protocol.ProcedureArgument;
import org.icecomb.spark.planner.Protocol.ProcedureDescription;
import org.icecomb.spark.planner.Protocol.TableName;
import scala.Option;
import scala.collection.JavaConverters;

/** Execution of ANALYZE TABLE as a call of the procedure that computes the statistics. */
final class AnalyzeStatement {

  private static final TableName PROCEDURE =
      new TableName(List.of("system"), "compute_table_stats");

  private AnalyzeStatement() {}

  /**
   * The command for a statement; null if it is another one, or about something else than an icecomb
   * table. The classes are told by their names, as in {@link RefusedStatements}.
   */
  static LogicalPlan command(LogicalPlan plan) {
    String statement = plan.getClass().getSimpleName();
    boolean ofColumns = statement.equals("AnalyzeColumn");
    if (!ofColumns && !statement.equals("AnalyzeTable")
        || !(plan.children().head() instanceof ResolvedTable found)
        || !(found.table() instanceof IcecombTable table)
        || !(found.catalog() instanceof StatementCatalog catalog)) {
      return null;
    }
    String name = catalog.name() + "." + found.identifier();
    if (!ofColumns) {
      check(plan, name);
    }
    List<String> columns = ofColumns ? columns(plan, table.schema()) : null;
    return new StatementCommand(
        "AnalyzeTable",
        name,
        new StructType(),
        running -> compute(catalog.session(), name, columns));
  }

  private static void check(LogicalPlan plan, String name) {
    if (((scala.collection.Map<?, ?>) plan.productElement(1)).nonEmpty()) {
      throw SparkErrors.unsupported(
          "ANALYZE TABLE " + name + " PARTITION: statistics of an Iceberg table are about a snapshot",
          "leave the clause out");
    }
    if (Boolean.TRUE.equals(plan.productElement(2))) {
      throw SparkErrors.unsupported(
          "ANALYZE TABLE " + name + " COMPUTE STATISTICS NOSCAN: there is nothing to compute",
          "leave it out: each commit stores counts and bounds of its files, which Spark gets");
    }
  }

  /** The named columns as the table has them; null for all. */
  private static List<String> columns(LogicalPlan plan, StructType schema) {
    if (((Option<?>) plan.productElement(1)).isEmpty()) {
      return null;
    }
    List<String> found = new ArrayList<>();
    Object names = ((Option<?>) plan.productElement(1)).get();
    for (Object name : JavaConverters.seqAsJavaList((scala.collection.Seq<?>) names)) {
      found.add(
          Arrays.stream(schema.fieldNames())
              .filter(each -> isSame(each, name.toString()))
              .findFirst()
              .orElse(name.toString()));
    }
    return found;
  }

  private static boolean isSame(String column, String name) {
    return SQLConf.get().caseSensitiveAnalysis()
        ? column.equals(name)
        : column.equalsIgnoreCase(name);
  }

  private static List<Row> compute(PlannerSession planner, String table, List<String> columns) {
    List<ProcedureArgument> arguments = new ArrayList<>();
    arguments.add(new ProcedureArgument("table", TextNode.valueOf(table)));
    if (columns != null) {
      ArrayNode names = Json.array();
      columns.forEach(names::add);
      arguments.add(new ProcedureArgument("columns", names));
    }
    ProcedureDescription description;
    try {
      description =
          planner.ask(catalog -> new LoadProcedure(catalog, PROCEDURE), ProcedureDescription.class);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
    PlannedCalls.call(planner, PROCEDURE, description, arguments);
    return List.of();
  }
}
