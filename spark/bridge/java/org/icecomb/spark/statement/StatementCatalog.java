package org.icecomb.spark.statement;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.PlannerSession;

/**
 * A catalog whose {@code alterTable} accepts a {@link StatementChange}, and with procedures for
 * CALL.
 */
public interface StatementCatalog extends TableCatalog {

  /** The catalog's connection to the planner. */
  PlannerSession session();

  /** Whether icecomb serves its views; those of the session catalog are Spark's own. */
  default boolean keepsViews() {
    return true;
  }

  /**
   * Whether icecomb creates the new table of a CREATE TABLE … LIKE.
   *
   * @param provider the provider after {@code USING}, or null
   * @param source the table to copy; null for a view
   */
  default boolean makesLike(String provider, Table source) {
    return true;
  }

  /**
   * Creates an empty table like another one. A copy of an icecomb table also has its exact Iceberg
   * types, its write order and its properties.
   *
   * @param columns the columns of the other table or view
   * @param partitions the partitioning of the other table
   * @param properties the statement's properties, which override those of the other table
   * @param source the other table; null for a view
   */
  Table createLike(
      Identifier table,
      StructType columns,
      Transform[] partitions,
      Map<String, String> properties,
      Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException;

  /** Whether a table, view or procedure name resolves to such a catalog, by Spark's rules. */
  static boolean serves(SparkSession session, scala.collection.Seq<String> name) {
    return find(session, scala.collection.JavaConverters.seqAsJavaList(name)) != null;
  }

  /** The catalog to which a name resolves; null if it is not an icecomb catalog. */
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
