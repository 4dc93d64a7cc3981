package org.icecomb.spark.view;

import java.util.Arrays;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.analysis.UnresolvedView;
import org.apache.spark.sql.catalyst.plans.logical.AlterViewAs;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.DropView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.RenameTable;
import org.apache.spark.sql.catalyst.plans.logical.SetViewProperties;
import org.apache.spark.sql.catalyst.plans.logical.ShowViews;
import org.apache.spark.sql.catalyst.plans.logical.UnsetViewProperties;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.icecomb.spark.statement.StatementCatalog;
import org.icecomb.spark.statement.StatementCommand;
import scala.collection.JavaConverters;

/**
 * The statements about views of icecomb's catalogs on a Spark that parses them and then reports
 * that only its own catalog can have views (up to 4.1). Those of other catalogs are not changed.
 */
public final class ViewStatements {

  private final SparkSession session;

  public ViewStatements(SparkSession session) {
    this.session = session;
  }

  /** Rewrites a parsed statement. */
  public LogicalPlan rewritten(LogicalPlan plan) {
    if (plan instanceof ExplainCommand explain) {
      LogicalPlan inner = rewritten(explain.logicalPlan());
      return inner == explain.logicalPlan() ? plan : new ExplainCommand(inner, explain.mode());
    }
    if (plan instanceof CreateView create) {
      ViewName view = named(create.child());
      return done(plan, view, running -> ViewChanges.create(running, view, create));
    }
    if (plan instanceof AlterViewAs alter) {
      ViewName view = named(alter.child());
      return done(plan, view, running -> ViewChanges.replaceQuery(running, view, alter));
    }
    if (plan instanceof DropView drop) {
      ViewName view = named(drop.child());
      return done(plan, view, running -> ViewChanges.drop(view, drop.ifExists()));
    }
    if (plan instanceof SetViewProperties set) {
      ViewName view = named(set.child());
      var properties = JavaConverters.mapAsJavaMap(set.properties());
      return done(plan, view, running -> ViewChanges.set(view, properties));
    }
    if (plan instanceof UnsetViewProperties unset) {
      ViewName view = named(unset.child());
      List<String> keys = JavaConverters.seqAsJavaList(unset.propertyKeys());
      return done(plan, view, running -> ViewChanges.unset(view, keys, unset.ifExists()));
    }
    if (plan instanceof RenameTable rename && rename.isView()) {
      ViewName view = named(rename.child());
      return done(plan, view, running -> ViewChanges.rename(view, target(view, rename)));
    }
    return plan instanceof ShowViews show ? shown(show) : plan;
  }

  /** The view named by a statement; null if it is a temporary one, or in another catalog. */
  private ViewName named(LogicalPlan name) {
    var catalog = session.sessionState().catalog();
    if (name instanceof UnresolvedIdentifier given) {
      return given.allowTemp() && catalog.isTempView(given.nameParts())
          ? null
          : ViewName.find(session, given.nameParts());
    }
    if (name instanceof UnresolvedView given) {
      return catalog.isTempView(given.multipartIdentifier())
          ? null
          : ViewName.find(session, given.multipartIdentifier());
    }
    if (name instanceof UnresolvedTableOrView given) {
      return catalog.isTempView(given.multipartIdentifier())
          ? null
          : ViewName.find(session, given.multipartIdentifier());
    }
    return null;
  }

  /** A new name without a catalog is in that of the old one; without a namespace, in its namespace. */
  private ViewName target(ViewName view, RenameTable rename) {
    List<String> parts = JavaConverters.seqAsJavaList(rename.newName());
    if (StatementCatalog.isQualified(session, parts)) {
      return ViewName.find(session, rename.newName());
    }
    return view.sibling(parts);
  }

  private LogicalPlan shown(ShowViews show) {
    CatalogManager catalogs = session.sessionState().catalogManager();
    List<String> parts =
        show.namespace() instanceof UnresolvedNamespace named
            ? JavaConverters.seqAsJavaList(named.multipartIdentifier())
            : List.of();
    boolean qualified = !parts.isEmpty() && catalogs.isCatalogRegistered(parts.get(0));
    var catalog = qualified ? catalogs.catalog(parts.get(0)) : catalogs.currentCatalog();
    if (!(catalog instanceof StatementCatalog ours) || !ours.keepsViews()) {
      return show;
    }
    List<String> given = qualified ? parts.subList(1, parts.size()) : parts;
    List<String> namespace =
        given.isEmpty() && !qualified ? Arrays.asList(catalogs.currentNamespace()) : given;
    return new StatementCommand(
        show.nodeName(),
        String.join(".", namespace),
        show.schema(),
        running -> ViewRows.list(running, ours, namespace, show.pattern()));
  }

  private static LogicalPlan done(
      LogicalPlan parsed, ViewName view, Function<SparkSession, List<Row>> work) {
    return view == null
        ? parsed
        : new StatementCommand(parsed.nodeName(), view.toString(), parsed.schema(), work);
  }
}
