package org.icecomb.spark;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.connector.catalog.ViewCatalog;
import org.apache.spark.sql.connector.catalog.ViewChange;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.AlterView;
import org.icecomb.spark.planner.Protocol.LoadView;
import org.icecomb.spark.planner.Protocol.Request;
import org.icecomb.spark.planner.Protocol.ViewDescription;

/** Spark's interface of views up to 4.1; SQL accesses them by {@code org.icecomb.spark.view}. */
abstract class CatalogWithViews extends BaseViewCatalog implements ViewCatalog {

  /** Whether Spark's own SQL supports views of catalogs. */
  static final boolean IN_SQL = false;

  /** Loads a table; Spark looks for a view only if there is none. */
  @Override
  public Table loadTable(Identifier table) {
    try {
      return super.loadTable(table);
    } catch (Exception e) {
      if (e.getCause() instanceof PlannerException cause
          && cause.type().equals("NoSuchIcebergTableError")
          && viewExists(table)) {
        throw SparkErrors.unchecked(new NoSuchTableException(table));
      }
      throw SparkErrors.unchecked(e);
    }
  }

  @Override
  public View loadView(Identifier view) {
    return described(view, catalog -> new LoadView(catalog, name(view)));
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
            "Set or remove properties, or CREATE OR REPLACE the view.");
      }
    }
    return described(view, catalog -> new AlterView(catalog, name(view), set, remove));
  }

  final View described(Identifier view, Function<String, Request> request) {
    return new PlannedView(view, askView(view, request, ViewDescription.class));
  }
}
