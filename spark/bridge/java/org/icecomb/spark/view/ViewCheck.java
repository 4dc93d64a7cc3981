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
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.icecomb.spark.statement.StatementCatalog;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/** Checks of views that Spark makes only for those of its own catalog. */
public final class ViewCheck extends AbstractFunction1<LogicalPlan, BoxedUnit> {

  public ViewCheck(SparkSession session) {}

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    if (plan instanceof CreateView create && create.child() instanceof ResolvedIdentifier view) {
      check(view.catalog(), view.identifier(), create.query());
    }
    if (plan instanceof AlterViewAs alter && alter.child() instanceof ResolvedPersistentView view) {
      check(view.catalog(), view.identifier(), alter.query());
    }
    return BoxedUnit.UNIT;
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
