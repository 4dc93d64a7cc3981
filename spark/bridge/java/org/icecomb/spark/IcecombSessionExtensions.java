package org.icecomb.spark;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSessionExtensions;
import org.icecomb.spark.functions.FilterFunctions;
import org.icecomb.spark.source.CarriedLineage;
import org.icecomb.spark.source.ChosenStates;
import org.icecomb.spark.source.KeyFilters;
import org.icecomb.spark.source.NullPartitions;
import org.icecomb.spark.source.PartitionOverwrites;
import org.icecomb.spark.source.ReadTargets;
import org.icecomb.spark.statement.ExtensionOrder;
import org.icecomb.spark.statement.ProcedureCalls;
import org.icecomb.spark.statement.RefusedStatements;
import org.icecomb.spark.statement.StatementParser;
import org.icecomb.spark.statement.TablesLike;
import org.icecomb.spark.view.ViewCheck;
import org.icecomb.spark.view.ViewRelations;
import scala.Tuple2;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * The session extension for {@code
 * spark.sql.extensions=org.icecomb.spark.IcecombSessionExtensions}: the statements of {@link
 * StatementParser}, and a catalog {@code lake} if none is configured. The planners of configured
 * catalogs start in the background, so that the session's first query finds them running.
 */
public final class IcecombSessionExtensions
    extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {

  private static final String CATALOGS = "spark.sql.catalog.";
  private static final String DEFAULT_CATALOG = CATALOGS + "lake";
  private static final String AHEAD = "spark.sql.icecomb.start-planner-ahead";

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    SparkConf conf = SparkContext.getOrCreate().conf();
    Set<String> configured = catalogs(conf);
    if (configured.isEmpty()) {
      // The planner finds out where the metastore is, as for every catalog without options.
      conf.setIfMissing(DEFAULT_CATALOG, "org.icecomb.spark.IcecombCatalog");
    }
    if (FittingSpark.complaint() != null) {
      extensions.injectParser(UnfitCatalog::before);
      return BoxedUnit.UNIT;
    }
    startPlanners(conf, configured);
    extensions.injectParser(StatementParser::over);
    extensions.injectResolutionRule(ProcedureCalls::new);
    extensions.injectResolutionRule(RefusedStatements::new);
    extensions.injectResolutionRule(TablesLike::new);
    extensions.injectResolutionRule(NullPartitions::new);
    extensions.injectResolutionRule(PartitionOverwrites::new);
    SparkVersion.keepSources(extensions);
    if (!SparkVersion.keepsMetadata()) {
      extensions.injectPostHocResolutionRule(CarriedLineage::new);
    }
    extensions.injectPlanNormalizationRule(ChosenStates::new);
    extensions.injectPlanNormalizationRule(ReadTargets::new);
    extensions.injectPlannerStrategy(KeyFilters::new);
    if (!SparkVersion.pushesFunctions()) {
      extensions.injectOptimizerRule(FilterFunctions::new);
    }
    if (!SparkVersion.hasViews()) {
      extensions.injectResolutionRule(ViewRelations::new);
    }
    extensions.injectCheckRule(ViewCheck::new);
    extensions.injectCheckRule(ExtensionOrder::new);
    return BoxedUnit.UNIT;
  }

  /**
   * The names of icecomb's catalogs. Sessions copy this configuration when they begin, after their
   * extensions are applied.
   */
  private static Set<String> catalogs(SparkConf conf) {
    Set<String> found = new TreeSet<>();
    for (Tuple2<String, String> setting : conf.getAllWithPrefix(CATALOGS)) {
      if (!setting._1().contains(".") && setting._2().startsWith("org.icecomb.spark.")) {
        found.add(setting._1());
      }
    }
    return found;
  }

  /** Sessions with only the extension, perhaps by cluster defaults, may never use a table. */
  private static void startPlanners(SparkConf conf, Set<String> catalogs) {
    if (!conf.getBoolean(AHEAD, true)) {
      return;
    }
    for (String catalog : catalogs) {
      Map<String, String> options = new HashMap<>();
      for (Tuple2<String, String> option : conf.getAllWithPrefix(CATALOGS + catalog + ".")) {
        options.put(option._1(), option._2());
      }
      PlannerSession.startAhead(options);
    }
  }
}
