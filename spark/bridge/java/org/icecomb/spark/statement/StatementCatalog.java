package org.icecomb.spark.statement;

import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.icecomb.spark.PlannerSession;

/** A catalog whose {@code alterTable} takes a {@link StatementChange}, and whose procedures CALL finds. */
public interface StatementCatalog extends TableCatalog {

  /** The way to the planner. */
  PlannerSession session();

  /** Whether its views are ours; those of the session catalog are Spark's own. */
  default boolean keepsViews() {
    return true;
  }

  /** Whether the name of a table, view or procedure leads to such a catalog, by Spark's rules. */
  static boolean serves(SparkSession session, scala.collection.Seq<String> name) {
    return find(session, scala.collection.JavaConverters.seqAsJavaList(name)) != null;
  }

  /** The catalog that a name leads to; null where that is another one. */
  static StatementCatalog find(SparkSession session, List<String> name) {
    CatalogManager catalogs = session.sessionState().catalogManager();
    CatalogPlugin catalog =
        isQualified(session, name) ? catalogs.catalog(name.get(0)) : catalogs.currentCatalog();
    return catalog instanceof StatementCatalog ours ? ours : null;
  }

  /** Whether a name begins with that of a catalog. */
  static boolean isQualified(SparkSession session, List<String> name) {
    return name.size() > 1
        && session.sessionState().catalogManager().isCatalogRegistered(name.get(0));
  }
}
