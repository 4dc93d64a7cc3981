package org.icecomb.spark.view;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.AnalysisContext;
import org.apache.spark.sql.catalyst.analysis.Analyzer;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.DescribeRelation;
import org.apache.spark.sql.catalyst.plans.logical.InsertIntoStatement;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ShowColumns;
import org.apache.spark.sql.catalyst.plans.logical.ShowCreateTable;
import org.apache.spark.sql.catalyst.plans.logical.ShowTableProperties;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias$;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.NodeChange;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.SparkVersion;
import org.icecomb.spark.planner.Protocol.ViewDescription;
import org.icecomb.spark.statement.CommandPlan;
import org.icecomb.spark.statement.StatementCommand;
import scala.Option;

/**
 * A rule that replaces an icecomb view's name by its query, and answers SHOW and DESCRIBE of one,
 * on a Spark that supports views only in its own catalog (up to 4.1). The query is parsed and
 * resolved by Spark like that of its own view: in the namespace and with the settings of its
 * creation.
 */
public final class ViewRelations extends Rule<LogicalPlan> {

  private final SparkSession session;

  public ViewRelations(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperatorsUp(new NodeChange<>(this::resolved));
  }

  private LogicalPlan resolved(LogicalPlan node) {
    if (node instanceof UnresolvedRelation relation && !relation.isStreaming()) {
      ViewName name = ViewName.find(session, relation.multipartIdentifier());
      ViewDescription view = name == null ? null : name.load();
      return view == null ? node : relation(name, view);
    }
    if (node instanceof InsertIntoStatement insert
        && insert.table() instanceof UnresolvedRelation relation) {
      ViewName name = ViewName.find(session, relation.multipartIdentifier());
      if (name != null && name.load() != null) {
        throw SparkErrors.unsupported(
            "Inserting into a view is not allowed. View: " + name.quoted(),
            "Insert into the table that it reads.");
      }
    }
    if (node instanceof DescribeRelation describe && !namesPartition(describe)) {
      return answered(
          node, describe.relation(), name -> ViewRows.describe(name, describe.isExtended()));
    }
    if (node instanceof ShowTableProperties show) {
      return answered(node, show.table(), name -> ViewRows.properties(name, show.propertyKey()));
    }
    if (node instanceof ShowCreateTable show && !show.asSerde()) {
      return answered(node, show.child(), ViewRows::create);
    }
    if (node instanceof ShowColumns show) {
      return answered(node, show.child(), ViewRows::columns);
    }
    return node;
  }

  private static boolean namesPartition(DescribeRelation describe) {
    return describe.productElement(1) instanceof scala.collection.Map<?, ?> spec && !spec.isEmpty();
  }

  private LogicalPlan answered(
      LogicalPlan statement, LogicalPlan about, Function<ViewName, List<Row>> rows) {
    if (!(about instanceof UnresolvedTableOrView unresolved)) {
      return statement;
    }
    ViewName name = ViewName.find(session, unresolved.multipartIdentifier());
    return name == null || name.load() == null
        ? statement
        : new StatementCommand(
            statement.nodeName(),
            name.toString(),
            statement.schema(),
            running -> rows.apply(name));
  }

  private LogicalPlan relation(ViewName name, ViewDescription view) {
    CatalogTable described = described(name, view);
    SubqueryAlias parsed =
        (SubqueryAlias)
            session
                .sessionState()
                .catalog()
                .getRelation(described, CaseInsensitiveStringMap.empty());
    View unresolved = (View) parsed.child();
    LogicalPlan query =
        AnalysisContext.withAnalysisContext(
            described, () -> analyzed(name, unresolved));
    LogicalPlan resolved =
        unresolved.mapChildren(child -> query);
    return SubqueryAlias$.MODULE$.apply(CommandPlan.list(name.parts()), resolved);
  }

  private LogicalPlan analyzed(ViewName name, View view) {
    AnalysisContext context = AnalysisContext.get();
    if (context.nestedViewDepth() > context.maxNestedViewDepth()) {
      throw SparkErrors.unsupported(
          "[VIEW_EXCEED_MAX_NESTED_DEPTH] The depth of view "
              + name.quoted()
              + " exceeds the maximum view resolution depth ("
              + context.maxNestedViewDepth()
              + "): views may read each other in a cycle",
          "CREATE OR REPLACE one of them, or raise spark.sql.view.maxNestedViewDepth.");
    }
    Analyzer analyzer = session.sessionState().analyzer();
    LogicalPlan query =
        SQLConf.withExistingConf(
            SparkVersion.settings(view.desc()),
            () ->
                analyzer.org$apache$spark$sql$catalyst$analysis$Analyzer$$executeSameContext(
                    view.child()));
    // outside of the view its names would have another meaning
    analyzer.checkAnalysis(query);
    return query;
  }

  /** A view as Spark's own catalog would describe it. */
  private CatalogTable described(ViewName name, ViewDescription view) {
    Map<String, String> properties = new LinkedHashMap<>();
    List<String> here = new ArrayList<>(List.of(view.currentCatalog()));
    here.addAll(view.currentNamespace());
    numbered(properties, "view.catalogAndNamespace.numParts", "view.catalogAndNamespace.part.", here);
    numbered(properties, "view.query.out.numCols", "view.query.out.col.", view.queryColumns());
    view.settings().forEach((key, value) -> properties.put("view.sqlConfig." + key, value));
    if (view.schemaMode() != null) {
      properties.put("view.schemaMode", view.schemaMode());
    }
    TableIdentifier identifier =
        new TableIdentifier(
            name.name().name(),
            Option.apply(String.join(".", name.name().namespace())),
            Option.apply(name.catalog().name()));
    return SparkViews.table(
        identifier, ViewRows.schema(view), view.query(), properties, session.version());
  }

  private static void numbered(
      Map<String, String> properties, String count, String each, List<String> values) {
    if (!values.isEmpty()) {
      properties.put(count, String.valueOf(values.size()));
    }
    for (int i = 0; i < values.size(); i++) {
      properties.put(each + i, values.get(i));
    }
  }
}
