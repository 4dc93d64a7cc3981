package org.icecomb.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;
import scala.collection.JavaConverters;

/** Tables cached by sessions: unchanged until refreshed, or written under the same name. */
public final class CachedTables {

  private CachedTables() {}

  /** Whether Spark may have taken a relation from its cache, regardless of its age. */
  public static boolean mayStay(DataSourceV2Relation relation) {
    return relation.timeTravelSpec().isEmpty();
  }

  /** Whether nothing is cached. */
  public static boolean areNone() {
    return cache().isEmpty();
  }

  /**
   * Refreshes a table that is cached under other names than the one it was written by, which Spark
   * refreshes itself. Catalogs of one metastore may all have the table.
   *
   * @param catalog the catalog by which it was written
   * @param table its name in that catalog
   * @param below whether it was written by a name below that
   */
  static void refresh(String catalog, List<String> table, boolean below) {
    if (areNone()) {
      return;
    }
    SparkSession spark = session();
    for (String other :
        JavaConverters.seqAsJavaList(
            spark.sessionState().catalogManager().listCatalogs(Option.empty()))) {
      if (below || !other.equals(catalog)) {
        List<String> name = new ArrayList<>(List.of(other));
        name.addAll(table);
        cache().recacheTableOrView(spark, CommandPlan.list(name), false);
      }
    }
  }

  private static CacheManager cache() {
    return session().sharedState().cacheManager();
  }

  private static SparkSession session() {
    return (SparkSession) org.apache.spark.sql.SparkSession.active();
  }
}
