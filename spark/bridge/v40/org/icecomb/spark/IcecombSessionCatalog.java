package org.icecomb.spark;

import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;

/**
 * The session catalog: {@code
 * spark.sql.catalog.spark_catalog=org.icecomb.spark.IcecombSessionCatalog}.
 */
public final class IcecombSessionCatalog extends BaseSessionCatalog implements ProcedureCatalog {

  // Overrides nothing in Spark 4.0, which does not list procedures.
  public Identifier[] listProcedures(String[] namespace) {
    return ours().listProcedures(namespace);
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier procedure) {
    return ours().loadProcedure(procedure);
  }
}
