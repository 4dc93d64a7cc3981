package org.icecomb.spark.source;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.statement.StatementCatalog;
import scala.collection.JavaConverters;

/**
 * A rule that refuses a statement that names an icecomb table more than once, with different
 * options: this Spark looks a table up once, and reads it everywhere with the same options.
 */
public final class RepeatedTables extends Rule<LogicalPlan> {

  private final SparkSession session;

  RepeatedTables(SparkSession session) {
    this.session = session;
  }

  /** Adds the rule to sessions, before names are resolved. */
  public static void refuse(SparkSessionExtensions extensions) {
    extensions.injectHintResolutionRule(RepeatedTables::new);
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    Map<List<String>, CaseInsensitiveStringMap> known = new HashMap<>();
    RepeatableRows.visit(
        plan,
        node -> {
          if (node instanceof UnresolvedRelation relation && !relation.isStreaming()) {
            CaseInsensitiveStringMap options = relation.clearWritePrivileges().options();
            List<String> named = JavaConverters.seqAsJavaList(relation.multipartIdentifier());
            CaseInsensitiveStringMap before = known.putIfAbsent(whole(named), options);
            if (before != null
                && !before.equals(options)
                && StatementCatalog.find(session, named) != null) {
              throw refused(String.join(".", named));
            }
          }
        });
    return plan;
  }

  /** The name with its catalog and namespace. */
  private List<String> whole(List<String> named) {
    if (StatementCatalog.isQualified(session, named)) {
      return named;
    }
    CatalogManager catalogs = session.sessionState().catalogManager();
    List<String> found = new ArrayList<>(List.of(catalogs.currentCatalog().name()));
    if (named.size() == 1) {
      found.addAll(List.of(catalogs.currentNamespace()));
    }
    found.addAll(named);
    return found;
  }

  private RuntimeException refused(String name) {
    return SparkErrors.unsupported(
        "The statement names table " + name + " with different options, and Spark " + session.version()
            + " would read it with the same ones everywhere",
        "Use VERSION AS OF, or name the branch or tag below the table (" + name + ".branch_…);"
            + " Spark 4.3 distinguishes them.");
  }
}
