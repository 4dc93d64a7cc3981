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
import org.icecomb.spark.planner.Protocol.AlterView;
import org.icecomb.spark.planner.Protocol.LoadView;
import org.icecomb.spark.planner.Protocol.Request;
import org.icecomb.spark.planner.Protocol.ViewDescription;

/** Views as Spark asks for them up to 4.1; SQL there gets to them by Iceberg's session extensions. */
abstract class CatalogWithViews extends BaseViewCatalog implements ViewCatalog {

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
            "set or remove properties, or CREATE OR REPLACE the view");
      }
    }
    return described(view, catalog -> new AlterView(catalog, name(view), set, remove));
  }

  final View described(Identifier view, Function<String, Request> request) {
    return new PlannedView(view, askView(view, request, ViewDescription.class));
  }
}
