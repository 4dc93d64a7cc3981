package org.icecomb.spark;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;
import scala.collection.JavaConverters;
import scala.collection.immutable.IndexedSeq;

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
   * refreshes itself: those in other catalogs of its metastore, also if only another session uses
   * them, and the path of its folder.
   *
   * @param uuid the table's, or null if only its name is known
   * @param catalog the catalog by which it was written
   * @param table its name in that catalog
   * @param below whether it was written by a name below that
   */
  static void refresh(String uuid, String catalog, List<String> table, boolean below) {
    if (areNone()) {
      return;
    }
    SparkSession spark = session();
    Set<List<String>> names = new LinkedHashSet<>();
    for (String each :
        JavaConverters.seqAsJavaList(
            spark.sessionState().catalogManager().listCatalogs(Option.empty()))) {
      names.add(named(each, table));
    }
    for (DataSourceV2Relation relation : relations()) {
      if (relation.table() instanceof IcecombTable cached && relation.catalog().isDefined()) {
        Identifier identifier = relation.identifier().get();
        List<String> parts = new ArrayList<>(List.of(identifier.namespace()));
        parts.add(identifier.name());
        if (cached.uuid().equals(uuid) || parts.equals(table)) {
          names.add(named(relation.catalog().get().name(), parts));
        }
      }
    }
    if (!below) {
      names.remove(named(catalog, table));
    }
    for (List<String> name : names) {
      cache().recacheTableOrView(spark, CommandPlan.list(name), false);
    }
  }

  private static List<String> named(String catalog, List<String> table) {
    List<String> name = new ArrayList<>(List.of(catalog));
    name.addAll(table);
    return name;
  }

  /** The relations in cached queries and their subqueries. */
  private static List<DataSourceV2Relation> relations() {
    List<LogicalPlan> plans = new ArrayList<>();
    try {
      Field cached = CacheManager.class.getDeclaredField("cachedData");
      cached.setAccessible(true);
      for (Object each : JavaConverters.seqAsJavaList((IndexedSeq<?>) cached.get(cache()))) {
        LogicalPlan plan = ((CachedData) each).plan();
        plans.add(plan);
        plans.addAll(JavaConverters.seqAsJavaList(plan.subqueriesAll()));
      }
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("Spark's cache cannot be looked through", e);
    }
    return plans.stream()
        .flatMap(plan -> JavaConverters.seqAsJavaList(plan.collectLeaves()).stream())
        .filter(DataSourceV2Relation.class::isInstance)
        .map(DataSourceV2Relation.class::cast)
        .toList();
  }

  private static CacheManager cache() {
    return session().sharedState().cacheManager();
  }

  private static SparkSession session() {
    return (SparkSession) org.apache.spark.sql.SparkSession.active();
  }
}
