package org.icecomb.spark;

import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.Done;
import org.icecomb.spark.planner.Protocol.DropView;
import org.icecomb.spark.planner.Protocol.Dropped;
import org.icecomb.spark.planner.Protocol.Exists;
import org.icecomb.spark.planner.Protocol.ListViews;
import org.icecomb.spark.planner.Protocol.RenameView;
import org.icecomb.spark.planner.Protocol.Request;
import org.icecomb.spark.planner.Protocol.TableNames;
import org.icecomb.spark.planner.Protocol.ViewExists;

/**
 * The methods for views that all Sparks have in common.
 *
 * <p>Not {@code @Override}: another interface declares these methods since 4.2.
 */
abstract class BaseViewCatalog extends BaseCatalog {

  public Identifier[] listViews(String[] namespace) {
    TableNames found =
        askNamespace(
            namespace, catalog -> new ListViews(catalog, List.of(namespace)), TableNames.class);
    return found.tables().stream()
        .map(view -> Identifier.of(view.namespace().toArray(new String[0]), view.name()))
        .toArray(Identifier[]::new);
  }

  public boolean viewExists(Identifier view) {
    return askView(view, catalog -> new ViewExists(catalog, name(view)), Exists.class).exists();
  }

  public boolean dropView(Identifier view) {
    return askView(view, catalog -> new DropView(catalog, name(view)), Dropped.class).dropped();
  }

  public void renameView(Identifier from, Identifier to) {
    Identifier target = renamed(from, to);
    try {
      session().ask(catalog -> new RenameView(catalog, name(from), name(target)), Done.class);
    } catch (PlannerException e) {
      boolean aboutView = e.type().equals("NoSuchViewError");
      throw SparkErrors.ofView(e, aboutView ? from : target);
    }
  }

  final <T extends Record> T askView(
      Identifier view, Function<String, Request> request, Class<T> kind) {
    try {
      return session().ask(request, kind);
    } catch (PlannerException e) {
      throw SparkErrors.ofView(e, view);
    }
  }
}
