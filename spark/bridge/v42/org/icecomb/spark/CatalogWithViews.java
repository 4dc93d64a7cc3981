package org.icecomb.spark;

import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Relation;
import org.apache.spark.sql.connector.catalog.RelationCatalog;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.connector.catalog.ViewCatalog;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.CreateView;
import org.icecomb.spark.planner.Protocol.Done;
import org.icecomb.spark.planner.Protocol.DropView;
import org.icecomb.spark.planner.Protocol.Dropped;
import org.icecomb.spark.planner.Protocol.Exists;
import org.icecomb.spark.planner.Protocol.ListViews;
import org.icecomb.spark.planner.Protocol.LoadView;
import org.icecomb.spark.planner.Protocol.RenameView;
import org.icecomb.spark.planner.Protocol.ReplaceView;
import org.icecomb.spark.planner.Protocol.Request;
import org.icecomb.spark.planner.Protocol.TableNames;
import org.icecomb.spark.planner.Protocol.ViewDescription;
import org.icecomb.spark.planner.Protocol.ViewExists;

/** Views as Spark asks for them since 4.2, where its own SQL has them. */
abstract class CatalogWithViews extends BaseCatalog implements RelationCatalog {

  @Override
  public Relation loadRelation(Identifier name) throws NoSuchTableException {
    try {
      return ((TableCatalog) this).loadTable(name);
    } catch (NoSuchTableException e) {
      return viewOr(name, e);
    } catch (Exception e) {
      if (e.getCause() instanceof PlannerException cause
          && cause.type().equals("NoSuchIcebergTableError")) {
        return viewOr(name, e);
      }
      throw SparkErrors.unchecked(e);
    }
  }

  private View viewOr(Identifier name, Exception missing) {
    try {
      return ((ViewCatalog) this).loadView(name);
    } catch (NoSuchViewException e) {
      throw SparkErrors.unchecked(missing);
    }
  }

  @Override
  public Identifier[] listViews(String[] namespace) {
    TableNames found =
        askNamespace(
            namespace, catalog -> new ListViews(catalog, List.of(namespace)), TableNames.class);
    return found.tables().stream()
        .map(view -> Identifier.of(view.namespace().toArray(new String[0]), view.name()))
        .toArray(Identifier[]::new);
  }

  @Override
  public boolean viewExists(Identifier view) {
    return askView(view, catalog -> new ViewExists(catalog, name(view)), Exists.class).exists();
  }

  @Override
  public View loadView(Identifier view) {
    return described(view, catalog -> new LoadView(catalog, name(view)));
  }

  @Override
  public boolean dropView(Identifier view) {
    return askView(view, catalog -> new DropView(catalog, name(view)), Dropped.class).dropped();
  }

  @Override
  public void renameView(Identifier from, Identifier to) {
    Identifier target = renamed(from, to);
    try {
      session().ask(catalog -> new RenameView(catalog, name(from), name(target)), Done.class);
    } catch (PlannerException e) {
      boolean aboutView = e.type().equals("NoSuchViewError");
      throw SparkErrors.ofView(e, aboutView ? from : target);
    }
  }

  @Override
  public View createView(Identifier view, View wanted) {
    ViewDescription definition = PlannedView.described(wanted);
    return described(view, catalog -> new CreateView(catalog, name(view), definition));
  }

  @Override
  public View replaceView(Identifier view, View wanted) {
    ViewDescription definition = PlannedView.described(wanted);
    return described(view, catalog -> new ReplaceView(catalog, name(view), definition, false));
  }

  @Override
  public View createOrReplaceView(Identifier view, View wanted) {
    ViewDescription definition = PlannedView.described(wanted);
    return described(view, catalog -> new ReplaceView(catalog, name(view), definition, true));
  }

  private View described(Identifier view, Function<String, Request> request) {
    return PlannedView.of(askView(view, request, ViewDescription.class));
  }

  private <T extends Record> T askView(
      Identifier view, Function<String, Request> request, Class<T> kind) {
    try {
      return session().ask(request, kind);
    } catch (PlannerException e) {
      throw SparkErrors.ofView(e, view);
    }
  }
}
