package org.icecomb.spark;

import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.connector.catalog.ViewInfo;
import org.icecomb.spark.planner.Protocol.CreateView;
import org.icecomb.spark.planner.Protocol.ReplaceView;
import org.icecomb.spark.planner.Protocol.ViewDescription;

/** A catalog: {@code spark.sql.catalog.lake=org.icecomb.spark.IcecombCatalog}. */
public final class IcecombCatalog extends CatalogWithProcedures {

  static final boolean LIKE_IN_SQL = false;

  @Override
  public View createView(ViewInfo wanted) {
    ViewDescription definition = described(wanted);
    return described(
        wanted.ident(), catalog -> new CreateView(catalog, name(wanted.ident()), definition));
  }

  @Override
  public View replaceView(ViewInfo wanted, boolean orCreate) {
    ViewDescription definition = described(wanted);
    return described(
        wanted.ident(),
        catalog -> new ReplaceView(catalog, name(wanted.ident()), definition, orCreate));
  }

  private static ViewDescription described(ViewInfo wanted) {
    return PlannedView.described(
        wanted.sql(),
        wanted.currentCatalog(),
        wanted.currentNamespace(),
        wanted.schema(),
        wanted.queryColumnNames(),
        wanted.properties());
  }
}
