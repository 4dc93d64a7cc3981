package org.icecomb.spark.statement;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.TableCatalog;

/** A catalog whose {@code alterTable} takes a {@link StatementChange}. */
public interface StatementCatalog extends TableCatalog {

  /** Whether the name of a table leads to such a catalog, by Spark's rules. */
  static boolean serves(SparkSession session, scala.collection.Seq<String> table) {
    CatalogManager catalogs = session.sessionState().catalogManager();
    boolean named = table.size() > 1 && catalogs.isCatalogRegistered(table.head());
    CatalogPlugin catalog =
        named ? catalogs.catalog(table.head()) : catalogs.currentCatalog();
    return catalog instanceof StatementCatalog;
  }
}
