package org.icecomb.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.planner.Protocol.CreateView;
import org.icecomb.spark.planner.Protocol.ViewDescription;

/** A catalog: {@code spark.sql.catalog.lake=org.icecomb.spark.IcecombCatalog}. */
public final class IcecombCatalog extends CatalogWithViews {

  static final boolean LIKE_IN_SQL = false;

  @Override
  public View createView(
      Identifier view,
      String query,
      String currentCatalog,
      String[] currentNamespace,
      StructType schema,
      String[] queryColumnNames,
      String[] columnAliases,
      String[] columnComments,
      Map<String, String> properties) {
    ViewDescription definition =
        PlannedView.described(
            query, currentCatalog, currentNamespace, schema, queryColumnNames, properties);
    return described(view, catalog -> new CreateView(catalog, name(view), definition));
  }
}
