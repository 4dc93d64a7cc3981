package org.icecomb.spark;

import org.apache.spark.SparkConf;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSessionExtensions;
import org.icecomb.spark.statement.ExtensionOrder;
import org.icecomb.spark.statement.LikeCheck;
import org.icecomb.spark.statement.ProcedureCalls;
import org.icecomb.spark.statement.RefusedStatements;
import org.icecomb.spark.statement.StatementParser;
import org.icecomb.spark.view.ViewCheck;
import org.icecomb.spark.view.ViewRelations;
import scala.Tuple2;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * What a session gets by {@code spark.sql.extensions=org.icecomb.spark.IcecombSessionExtensions}:
 * the statements of {@link StatementParser}, and a catalog {@code lake} where none is configured.
 */
public final class IcecombSessionExtensions
    extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {

  private static final String CATALOGS = "spark.sql.catalog.";
  private static final String DEFAULT_CATALOG = CATALOGS + "lake";

  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    registerCatalog(SparkContext.getOrCreate().conf());
    if (FittingSpark.complaint() != null) {
      extensions.injectParser(UnfitCatalog::before);
      return BoxedUnit.UNIT;
    }
    extensions.injectParser(StatementParser::over);
    extensions.injectResolutionRule(ProcedureCalls::new);
    extensions.injectResolutionRule(RefusedStatements::new);
    if (SparkVersion.hasViews()) {
      extensions.injectCheckRule(ViewCheck::new);
    } else {
      extensions.injectResolutionRule(ViewRelations::new);
    }
    extensions.injectCheckRule(ExtensionOrder::new);
    extensions.injectCheckRule(LikeCheck::new);
    return BoxedUnit.UNIT;
  }

  /**
   * Sessions copy this configuration as they begin, which is after their extensions are applied. The
   * planner finds out where the metastore is, as for every catalog without options.
   */
  private static void registerCatalog(SparkConf conf) {
    for (Tuple2<String, String> setting : conf.getAllWithPrefix(CATALOGS)) {
      if (!setting._1().contains(".") && setting._2().startsWith("org.icecomb.spark.")) {
        return;
      }
    }
    conf.setIfMissing(DEFAULT_CATALOG, "org.icecomb.spark.IcecombCatalog");
  }
}
