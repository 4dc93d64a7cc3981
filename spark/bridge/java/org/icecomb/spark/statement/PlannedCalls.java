package org.icecomb.spark.statement;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.internal.SQLConf;
import org.icecomb.spark.IcebergSettings;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.CallProcedure;
import org.icecomb.spark.planner.Protocol.CurrentNamespace;
import org.icecomb.spark.planner.Protocol.EndWork;
import org.icecomb.spark.planner.Protocol.LoadProcedure;
import org.icecomb.spark.planner.Protocol.ProcedureArgument;
import org.icecomb.spark.planner.Protocol.ProcedureDescription;
import org.icecomb.spark.planner.Protocol.ProcedurePage;
import org.icecomb.spark.planner.Protocol.ProcedureResult;
import org.icecomb.spark.planner.Protocol.SessionQuery;
import org.icecomb.spark.planner.Protocol.SessionWork;
import org.icecomb.spark.planner.Protocol.TableName;
import org.icecomb.spark.read.GivenRows;

/** Execution of procedure calls from either parser. */
public final class PlannedCalls {

  private PlannedCalls() {}

  static ProcedureDescription description(PlannerSession planner, TableName procedure) {
    try {
      return planner.ask(
          catalog -> new LoadProcedure(catalog, procedure), ProcedureDescription.class);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }

  /** Calls a procedure, lets the session do the work that it requests, and returns its rows. */
  public static GivenRows call(
      PlannerSession planner,
      TableName procedure,
      ProcedureDescription description,
      List<ProcedureArgument> arguments) {
    SparkSession spark = SparkSession.active();
    CatalogManager catalogs = spark.sessionState().catalogManager();
    CurrentNamespace current =
        new CurrentNamespace(
            catalogs.currentCatalog().name(), List.of(catalogs.currentNamespace()));
    boolean caseSensitive = spark.sessionState().conf().caseSensitiveAnalysis();
    Map<String, String> settings = IcebergSettings.now();
    try {
      List<JsonNode> rows = new ArrayList<>();
      ProcedureResult result =
          planner.ask(
              catalog ->
                  new CallProcedure(
                      catalog, procedure, arguments, current, caseSensitive, settings),
              ProcedurePage.class,
              () ->
                  page -> {
                    page.rows().forEach(rows::add);
                    page.work().forEach(work -> end(planner, work.id(), () -> rewrite(spark, work)));
                    page.queries()
                        .forEach(
                            one ->
                                end(
                                    planner,
                                    one.id(),
                                    () -> write(answer(spark, one), one.file())));
                    page.listings()
                        .forEach(
                            one ->
                                end(
                                    planner,
                                    one.id(),
                                    () ->
                                        write(ListedFolders.of(spark, planner, one), one.file())));
                    page.sketches()
                        .forEach(
                            one ->
                                end(
                                    planner,
                                    one.id(),
                                    () -> write(ColumnSketches.of(spark, one), one.file())));
                  },
              ProcedureResult.class);
      asWritten(
          spark,
          () -> {
            result.refreshed().forEach(table -> spark.sql("REFRESH TABLE " + table));
            result
                .views()
                .forEach((name, query) -> spark.sql(query).createOrReplaceTempView(name));
            return null;
          });
      return new GivenRows(Schemas.parse(description.schema()), rows);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }

  /**
   * Does what parses SQL with names of a table, for which Spark would put settings and the
   * environment, secrets among them, where they have <code>${…}</code>.
   */
  static <T> T asWritten(SparkSession spark, Supplier<T> work) {
    SQLConf conf = spark.sessionState().conf().clone();
    conf.setConfString("spark.sql.variable.substitute", "false");
    return SQLConf.withExistingConf(conf, work::get);
  }

  /** Work requested by a procedure. */
  @FunctionalInterface
  private interface Work {
    void run() throws Exception;
  }

  /** Does work that a procedure waits for, and reports its end. */
  private static void end(PlannerSession planner, String id, Work work) {
    String problem = null;
    try {
      work.run();
    } catch (Exception e) {
      problem = e.toString();
    }
    String told = problem;
    planner.cleanUp(catalog -> new EndWork(catalog, id, told));
  }

  /** Rewrites rows; the procedure commits the files. */
  private static void rewrite(SparkSession spark, SessionWork work) throws Exception {
    asWritten(
            spark,
            () -> spark.read().options(work.read()).table(work.table()).writeTo(work.table()))
        .options(work.write())
        .append();
  }

  private static Iterator<String> answer(SparkSession spark, SessionQuery query) {
    Dataset<Row> found = asWritten(spark, () -> spark.sql(query.statement()));
    return found.toJSON().toLocalIterator();
  }

  private static void write(Iterator<String> lines, String file) throws IOException {
    try (BufferedWriter out = Files.newBufferedWriter(Path.of(file))) {
      while (lines.hasNext()) {
        out.write(lines.next());
        out.write('\n');
      }
    }
  }
}
