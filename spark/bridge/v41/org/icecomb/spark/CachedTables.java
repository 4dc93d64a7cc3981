package org.icecomb.spark;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.icecomb.spark.statement.CommandPlan;

/** What sessions have cached: it stays as it is until they read it anew, or write by the same name. */
public final class CachedTables {

  private CachedTables() {}

  /** Whether Spark may have taken a relation from its cache, however old that is. */
  public static boolean mayStay(DataSourceV2Relation relation) {
    return relation.timeTravelSpec().isEmpty();
  }

  /** Whether nothing is cached. */
  public static boolean areNone() {
    return cache().isEmpty();
  }

  /** Reads anew what is cached under the name of a table. */
  static void refresh(String catalog, List<String> table) {
    if (!areNone()) {
      List<String> name = new ArrayList<>(List.of(catalog));
      name.addAll(table);
      cache().recacheTableOrView(session(), CommandPlan.list(name), false);
    }
  }

  private static CacheManager cache() {
    return session().sharedState().cacheManager();
  }

  private static SparkSession session() {
    return (SparkSession) org.apache.spark.sql.SparkSession.active();
  }
}
