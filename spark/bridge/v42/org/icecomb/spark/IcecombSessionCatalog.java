package org.icecomb.spark;

import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * The session catalog: {@code
 * spark.sql.catalog.spark_catalog=org.icecomb.spark.IcecombSessionCatalog}.
 */
public final class IcecombSessionCatalog extends BaseSessionCatalog implements ProcedureCatalog {

  @Override
  public Table createTableLike(Identifier table, TableInfo given, Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return makesLike(given.properties().get(PROP_PROVIDER), source)
        ? createLike(table, given.schema(), given.partitions(), given.properties(), source)
        : sparks().createTableLike(table, given, source);
  }

  @Override
  public Identifier[] listProcedures(String[] namespace) {
    return ours().listProcedures(namespace);
  }

  @Override
  public UnboundProcedure loadProcedure(Identifier procedure) {
    return ours().loadProcedure(procedure);
  }

  /** The changelog of an icecomb table: Spark's own catalog has none. */
  @Override
  public Changelog loadChangelog(
      Identifier table, ChangelogContext context, CaseInsensitiveStringMap options) {
    return ours().loadChangelog(table, context, options);
  }
}
