package org.icecomb.spark;

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
import org.icecomb.spark.planner.Protocol.LoadView;
import org.icecomb.spark.planner.Protocol.ReplaceView;
import org.icecomb.spark.planner.Protocol.Request;
import org.icecomb.spark.planner.Protocol.ViewDescription;

/** Spark's interface of views since 4.2, where its own SQL supports them. */
abstract class CatalogWithViews extends BaseViewCatalog implements RelationCatalog {

  /** Whether Spark's own SQL supports views of catalogs. */
  static final boolean IN_SQL = true;

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
  public View loadView(Identifier view) {
    return described(view, catalog -> new LoadView(catalog, name(view)));
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
}
