package org.icecomb.spark.view;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.LoadView;
import org.icecomb.spark.planner.Protocol.Request;
import org.icecomb.spark.planner.Protocol.TableName;
import org.icecomb.spark.planner.Protocol.ViewDescription;
import org.icecomb.spark.statement.StatementCatalog;
import scala.collection.JavaConverters;

/** A name that may be that of a view in an icecomb catalog. */
record ViewName(StatementCatalog catalog, TableName name) {

  /** Resolves a name by Spark's rules; null if it is in another catalog. */
  static ViewName find(SparkSession session, scala.collection.Seq<String> written) {
    List<String> parts = new ArrayList<>(JavaConverters.seqAsJavaList(written));
    CatalogManager catalogs = session.sessionState().catalogManager();
    if (parts.size() == 1 || !catalogs.isCatalogRegistered(parts.get(0))) {
      parts.addAll(0, here(catalogs, parts.size() == 1));
    }
    if (!(catalogs.catalog(parts.get(0)) instanceof StatementCatalog ours)
        || !ours.keepsViews()) {
      return null;
    }
    int last = parts.size() - 1;
    return new ViewName(
        ours, new TableName(List.copyOf(parts.subList(1, last)), parts.get(last)));
  }

  /**
   * The current catalog and namespace: inside of a view, those at its creation; else the session's.
   */
  private static List<String> here(CatalogManager catalogs, boolean withNamespace) {
    List<String> found =
        new ArrayList<>(JavaConverters.seqAsJavaList(AnalysisContext.get().catalogAndNamespace()));
    if (found.isEmpty()) {
      found.add(catalogs.currentCatalog().name());
      found.addAll(Arrays.asList(catalogs.currentNamespace()));
    }
    return withNamespace ? found : found.subList(0, 1);
  }

  /** Another view of the catalog, in the same namespace if none is given. */
  ViewName sibling(List<String> parts) {
    int last = parts.size() - 1;
    List<String> namespace = last == 0 ? name.namespace() : List.copyOf(parts.subList(0, last));
    return new ViewName(catalog, new TableName(namespace, parts.get(last)));
  }

  Identifier identifier() {
    return Identifier.of(name.namespace().toArray(new String[0]), name.name());
  }

  /** The view's parts, with the catalog's name. */
  List<String> parts() {
    List<String> parts = new ArrayList<>(List.of(catalog.name()));
    parts.addAll(name.namespace());
    parts.add(name.name());
    return parts;
  }

  /** The view; null if there is none. */
  ViewDescription load() {
    try {
      return catalog.session().ask(c -> new LoadView(c, name), ViewDescription.class);
    } catch (PlannerException e) {
      if (e.type().equals("NoSuchViewError") || e.type().equals("NoSuchIcebergViewError")) {
        return null;
      }
      throw SparkErrors.ofView(e, identifier());
    }
  }

  <T extends Record> T ask(Function<String, Request> request, Class<T> kind) {
    try {
      return catalog.session().ask(request, kind);
    } catch (PlannerException e) {
      throw SparkErrors.ofView(e, identifier());
    }
  }

  @Override
  public String toString() {
    return String.join(".", parts());
  }

  /** The name as shown in Spark's messages. */
  String quoted() {
    return "`" + String.join("`.`", parts()) + "`";
  }
}
