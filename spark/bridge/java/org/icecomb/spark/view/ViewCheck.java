package org.icecomb.spark.view;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedPersistentView;
import org.apache.spark.sql.catalyst.plans.logical.AlterViewAs;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.icecomb.spark.statement.StatementCatalog;
import scala.Option;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Checks of views that Spark makes only for those of its own catalog, and that the query of one
 * that is read runs no other code: whoever writes to its folder may have exchanged it.
 */
public final class ViewCheck extends AbstractFunction1<LogicalPlan, BoxedUnit> {

  private final SparkSession session;

  public ViewCheck(SparkSession session) {
    this.session = session;
  }

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    if (plan instanceof CreateView create && create.child() instanceof ResolvedIdentifier view) {
      check(view.catalog(), view.identifier(), create.query());
    }
    if (plan instanceof AlterViewAs alter && alter.child() instanceof ResolvedPersistentView view) {
      check(view.catalog(), view.identifier(), alter.query());
    }
    ViewQuery.visit(
        plan,
        read -> {
          if (read instanceof View view && isOurs(view.desc().identifier().catalog())) {
            ViewQuery.checkCalls(ViewQuery.parts(view.desc().identifier()), view.child());
          }
        });
    return BoxedUnit.UNIT;
  }

  private boolean isOurs(Option<String> catalog) {
    CatalogManager catalogs = session.sessionState().catalogManager();
    return catalog.isDefined()
        && catalogs.isCatalogRegistered(catalog.get())
        && catalogs.catalog(catalog.get()) instanceof StatementCatalog ours
        && ours.keepsViews();
  }

  private static void check(CatalogPlugin catalog, Identifier view, LogicalPlan query) {
    if (catalog instanceof StatementCatalog ours && ours.keepsViews()) {
      List<String> parts = new ArrayList<>(List.of(catalog.name()));
      parts.addAll(Arrays.asList(view.namespace()));
      parts.add(view.name());
      ViewQuery.check(parts, query);
    }
  }
}
