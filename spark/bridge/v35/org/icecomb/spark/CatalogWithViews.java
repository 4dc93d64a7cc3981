package org.icecomb.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.connector.catalog.ViewCatalog;
import org.apache.spark.sql.connector.catalog.ViewChange;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.AlterView;
import org.icecomb.spark.planner.Protocol.Done;
import org.icecomb.spark.planner.Protocol.DropView;
import org.icecomb.spark.planner.Protocol.Dropped;
import org.icecomb.spark.planner.Protocol.Exists;
import org.icecomb.spark.planner.Protocol.ListViews;
import org.icecomb.spark.planner.Protocol.LoadView;
import org.icecomb.spark.planner.Protocol.RenameView;
import org.icecomb.spark.planner.Protocol.Request;
import org.icecomb.spark.planner.Protocol.TableNames;
import org.icecomb.spark.planner.Protocol.ViewDescription;
import org.icecomb.spark.planner.Protocol.ViewExists;

/** Views as Spark asks for them up to 4.1; SQL there gets to them by Iceberg's session extensions. */
abstract class CatalogWithViews extends BaseCatalog implements ViewCatalog {

  @Override
  public Identifier[] listViews(String... namespace) {
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
  public View alterView(Identifier view, ViewChange... changes) {
    Map<String, String> set = new LinkedHashMap<>();
    List<String> remove = new ArrayList<>();
    for (ViewChange change : changes) {
      if (change instanceof ViewChange.SetProperty property) {
        set.put(property.property(), property.value());
      } else if (change instanceof ViewChange.RemoveProperty property) {
        remove.add(property.property());
      } else {
        throw SparkErrors.unsupported(
            "A view cannot be changed by " + change.getClass().getSimpleName(),
            "set or remove properties, or CREATE OR REPLACE the view");
      }
    }
    return described(view, catalog -> new AlterView(catalog, name(view), set, remove));
  }

  final View described(Identifier view, Function<String, Request> request) {
    return new PlannedView(view, askView(view, request, ViewDescription.class));
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
