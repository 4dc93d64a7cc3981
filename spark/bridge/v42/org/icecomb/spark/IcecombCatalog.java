package org.icecomb.spark;

import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableInfo;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** A catalog: {@code spark.sql.catalog.lake=org.icecomb.spark.IcecombCatalog}. */
public final class IcecombCatalog extends CatalogWithProcedures {

  static final boolean LIKE_IN_SQL = true;

  @Override
  public Table createTableLike(Identifier table, TableInfo given, Table source) {
    return createLike(table, given.schema(), given.partitions(), given.properties(), source);
  }

  /** Ignores the options, which the scan gets. */
  @Override
  public Changelog loadChangelog(
      Identifier table, ChangelogContext context, CaseInsensitiveStringMap options) {
    return PlannedChangelog.load(this, table, context);
  }
}
