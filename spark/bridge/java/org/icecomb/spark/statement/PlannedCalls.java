package org.icecomb.spark.statement;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.CallProcedure;
import org.icecomb.spark.planner.Protocol.CurrentNamespace;
import org.icecomb.spark.planner.Protocol.EndWork;
import org.icecomb.spark.planner.Protocol.ProcedureArgument;
import org.icecomb.spark.planner.Protocol.ProcedureDescription;
import org.icecomb.spark.planner.Protocol.ProcedurePage;
import org.icecomb.spark.planner.Protocol.ProcedureResult;
import org.icecomb.spark.planner.Protocol.SessionWork;
import org.icecomb.spark.planner.Protocol.TableName;
import org.icecomb.spark.read.GivenRows;

/** Calls of procedures, whoever parsed them. */
public final class PlannedCalls {

  private PlannedCalls() {}

  /** Calls a procedure, lets the session do what is left to it, and gives its rows. */
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
    try {
      List<JsonNode> rows = new ArrayList<>();
      ProcedureResult result =
          planner.ask(
              catalog ->
                  new CallProcedure(catalog, procedure, arguments, current, caseSensitive),
              ProcedurePage.class,
              () ->
                  page -> {
                    rows.addAll(page.rows());
                    page.work().forEach(work -> carryOut(planner, spark, work));
                  },
              ProcedureResult.class);
      result.statements().forEach(spark::sql);
      return new GivenRows(Schemas.parse(description.schema()), rows);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }

  /** Reads rows and writes them anew, and tells the procedure, which commits or gives up. */
  private static void carryOut(PlannerSession planner, SparkSession spark, SessionWork work) {
    String problem = null;
    try {
      spark
          .read()
          .options(work.read())
          .table(work.table())
          .writeTo(work.table())
          .options(work.write())
          .append();
    } catch (Exception e) {
      problem = e.toString();
    }
    String told = problem;
    planner.cleanUp(catalog -> new EndWork(catalog, work.id(), told));
  }
}
