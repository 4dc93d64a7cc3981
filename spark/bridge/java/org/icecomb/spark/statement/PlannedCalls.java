package org.icecomb.spark.statement;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.CallProcedure;
import org.icecomb.spark.planner.Protocol.CurrentNamespace;
import org.icecomb.spark.planner.Protocol.ProcedureArgument;
import org.icecomb.spark.planner.Protocol.ProcedureDescription;
import org.icecomb.spark.planner.Protocol.ProcedureResult;
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
      ProcedureResult result =
          planner.ask(
              catalog ->
                  new CallProcedure(catalog, procedure, arguments, current, caseSensitive),
              ProcedureResult.class);
      result.statements().forEach(spark::sql);
      return new GivenRows(Schemas.parse(description.schema()), result.rows());
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }
}
