package org.icecomb.spark;

import java.util.List;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.ListProcedures;
import org.icecomb.spark.planner.Protocol.LoadProcedure;
import org.icecomb.spark.planner.Protocol.ProcedureDescription;
import org.icecomb.spark.planner.Protocol.ProcedureNames;

/** CALL: what procedures there are, what they take and what they do is the planner's. */
abstract class CatalogWithProcedures extends CatalogWithViews implements ProcedureCatalog {

  // Spark 4.0 does not list them: there it overrides nothing.
  public Identifier[] listProcedures(String[] namespace) {
    ProcedureNames found =
        askNamespace(
            namespace,
            catalog -> new ListProcedures(catalog, List.of(namespace)),
            ProcedureNames.class);
    return found.procedures().stream()
        .map(name -> Identifier.of(name.namespace().toArray(new String[0]), name.name()))
        .toArray(Identifier[]::new);
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier procedure) {
    try {
      ProcedureDescription found =
          session()
              .ask(
                  catalog -> new LoadProcedure(catalog, name(procedure)),
                  ProcedureDescription.class);
      return new PlannedProcedure(session(), name(procedure), found);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }
}
