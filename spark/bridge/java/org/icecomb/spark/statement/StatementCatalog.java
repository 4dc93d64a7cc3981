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

/** A catalog whose {@code alterTable} takes a {@link StatementChange}, and whose procedures CALL finds. */
public interface StatementCatalog extends TableCatalog {

  /** The way to the planner. */
  PlannerSession session();

  /** Whether its views are ours; those of the session catalog are Spark's own. */
  default boolean keepsViews() {
    return true;
  }

  /**
   * Whether the new table of a CREATE TABLE … LIKE is one of ours.
   *
   * @param provider what is said behind {@code USING}, or null
   * @param source the table that it is to be like; null for a view
   */
  default boolean makesLike(String provider, Table source) {
    return true;
  }

  /**
   * Makes an empty table like another one. One like a table of ours has all that Spark's types do not
   * tell, its write order and its properties, too.
   *
   * @param columns of the other table or view
   * @param partitions of the other table
   * @param properties what the statement says, over those of the other table
   * @param source null for a view
   */
  Table createLike(
      Identifier table,
      StructType columns,
      Transform[] partitions,
      Map<String, String> properties,
      Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException;

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
