package org.icecomb.spark.statement;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.TextNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.ResolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.ProcedureArgument;
import org.icecomb.spark.planner.Protocol.TableName;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * Execution of ANALYZE TABLE as a call of the procedure that computes the statistics. With NOSCAN it
 * has nothing to do: rows and bytes are what manifests tell.
 */
final class AnalyzeStatement {

  private static final TableName OF_COLUMNS =
      new TableName(List.of("system"), "compute_table_stats");
  private static final TableName OF_PARTITIONS =
      new TableName(List.of("system"), "compute_partition_stats");

  private AnalyzeStatement() {}

  /**
   * The command for a statement; null if it is another one, or about something else than an icecomb
   * table. The classes are told by their names, as in {@link RefusedStatements}.
   */
  static LogicalPlan command(LogicalPlan plan) {
    String statement = plan.getClass().getSimpleName();
    if (statement.equals("AnalyzeTables")) {
      return ofNamespace(plan);
    }
    boolean ofColumns = statement.equals("AnalyzeColumn");
    if (!ofColumns && !statement.equals("AnalyzeTable")
        || !(plan.children().head() instanceof ResolvedTable found)
        || !(found.table() instanceof IcecombTable table)
        || !(found.catalog() instanceof StatementCatalog catalog)) {
      return null;
    }
    String name = catalog.name() + "." + found.identifier();
    boolean ofPartitions = !ofColumns && ofPartitions(plan, name, table);
    boolean noScan = !ofColumns && Boolean.TRUE.equals(plan.productElement(2));
    List<String> columns = ofColumns ? columns(plan, table.schema()) : null;
    return command(
        "AnalyzeTable",
        name,
        () -> {
          if (ofPartitions) {
            compute(catalog.session(), OF_PARTITIONS, name, null);
          } else if (!noScan) {
            compute(catalog.session(), OF_COLUMNS, name, columns);
          }
        });
  }

  private static LogicalPlan command(String name, String about, Runnable work) {
    return new StatementCommand(
        name,
        about,
        new StructType(),
        running -> {
          work.run();
          return List.of();
        });
  }

  /** The command for all tables of a namespace; null if icecomb does not have all of them. */
  private static LogicalPlan ofNamespace(LogicalPlan plan) {
    if (!(plan.children().head() instanceof ResolvedNamespace found)
        || !(found.catalog() instanceof StatementCatalog catalog)
        || !catalog.keepsViews()) {
      return null;
    }
    String[] namespace =
        JavaConverters.seqAsJavaList(found.namespace()).toArray(String[]::new);
    String name = catalog.name() + "." + String.join(".", namespace);
    boolean noScan = Boolean.TRUE.equals(plan.productElement(1));
    return command(
        "AnalyzeTables",
        name,
        () -> {
          Identifier[] tables = tables(catalog, namespace, name);
          if (!noScan) {
            computeEach(catalog, tables, name);
          }
        });
  }

  private static Identifier[] tables(StatementCatalog catalog, String[] namespace, String name) {
    try {
      return catalog.listTables(namespace);
    } catch (NoSuchNamespaceException e) {
      throw SparkErrors.unsupported(
          "ANALYZE TABLES IN " + name + ": there is no such namespace",
          "SHOW NAMESPACES lists them.");
    }
  }

  /** Analyzes every table, also after one that cannot be. */
  private static void computeEach(StatementCatalog catalog, Identifier[] tables, String name) {
    List<Exception> failures = new ArrayList<>();
    for (Identifier each : tables) {
      String table = catalog.name() + "." + each;
      try {
        compute(catalog.session(), OF_COLUMNS, table, null);
      } catch (Exception e) {
        // Spark's own are checked ones, which no signature tells
        failures.add(e);
      }
    }
    if (!failures.isEmpty()) {
      Exception first = failures.get(0);
      throw SparkErrors.unsupported(
          "ANALYZE TABLES IN %s: %d of %d tables could not be analyzed, the first because: %s"
              .formatted(name, failures.size(), tables.length, first.getMessage()),
          "The others have their statistics; ANALYZE TABLE says it of each.");
    }
  }

  /**
   * Whether the statement is about partitions, the values of which do not matter: a statistics file
   * is about all.
   */
  private static boolean ofPartitions(LogicalPlan plan, String name, IcecombTable table) {
    scala.collection.Map<?, ?> named = (scala.collection.Map<?, ?>) plan.productElement(1);
    for (Object column : JavaConverters.asJavaCollection(named.keys())) {
      boolean isKnown =
          Arrays.stream(table.partitioning())
              .flatMap(field -> Arrays.stream(field.references()))
              .anyMatch(source -> isSame(String.join(".", source.fieldNames()), column.toString()));
      if (!isKnown) {
        throw SparkErrors.unsupported(
            "ANALYZE TABLE " + name + " PARTITION: no partition field is made of " + column,
            "Name the columns that partitions are made of, see DESCRIBE TABLE.");
      }
    }
    return named.nonEmpty();
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

  private static void compute(
      PlannerSession planner, TableName procedure, String table, List<String> columns) {
    List<ProcedureArgument> arguments = new ArrayList<>();
    arguments.add(new ProcedureArgument("table", TextNode.valueOf(table)));
    if (columns != null) {
      ArrayNode names = Json.array();
      columns.forEach(names::add);
      arguments.add(new ProcedureArgument("columns", names));
    }
    PlannedCalls.call(
        planner, procedure, PlannedCalls.description(planner, procedure), arguments);
  }
}
