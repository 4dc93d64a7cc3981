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

/** Procedures for CALL, which the planner lists, describes and executes. */
abstract class CatalogWithProcedures extends CatalogWithViews implements ProcedureCatalog {

  // Overrides nothing in Spark 4.0, which does not list procedures.
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
      // Spark hides what any other exception says
      throw SparkErrors.refused(e.explanation());
    }
  }
}
