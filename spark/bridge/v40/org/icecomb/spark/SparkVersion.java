package org.icecomb.spark;

import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.internal.SQLConf;
import org.icecomb.spark.source.KeptSources;
import org.icecomb.spark.source.MarkedSources;
import org.icecomb.spark.source.NamedMetadata;
import org.icecomb.spark.source.RepeatedTables;

/** Differences between Spark versions, for the classes that all share. */
public final class SparkVersion {

  private SparkVersion() {}

  static boolean hasIdentity(Column column) {
    return column.identityColumnSpec() != null;
  }

  /** Whether Spark's Parquet reader can read a column as a wider type than the file's. */
  public static boolean widensColumns() {
    return true;
  }

  /**
   * Whether Spark pushes functions in filters down to tables, although it calls their code itself.
   */
  public static boolean pushesFunctions() {
    return true;
  }

  /** Whether Spark passes metadata columns of rows that move on to the tasks that write them. */
  public static boolean keepsMetadata() {
    return true;
  }

  /** Whether Spark has the type VARIANT. */
  public static boolean hasVariants() {
    return true;
  }

  /** Whether Spark's own SQL has CALL. */
  public static boolean hasCall() {
    return true;
  }

  /** Whether CREATE TABLE … LIKE of Spark's own SQL calls catalogs. */
  public static boolean hasLike() {
    return IcecombCatalog.LIKE_IN_SQL;
  }

  /** Whether Spark's own SQL has views of other catalogs. */
  public static boolean hasViews() {
    return CatalogWithViews.IN_SQL;
  }

  /** The settings under which a view's query is to be resolved. */
  public static SQLConf settings(CatalogTable view) {
    return View.effectiveSQLConf(view.viewSQLConfigs(), false, view.createVersion());
  }

  /** Whether {@link MarkedSources} runs: if Spark plans a statement while resolving it. */
  public static boolean marksSources() {
    return true;
  }

  static void keepSources(SparkSessionExtensions extensions) {
    RepeatedTables.refuse(extensions);
    extensions.injectHintResolutionRule(MarkedSources::new);
    extensions.injectResolutionRule(KeptSources::new);
    NamedMetadata.resolve(extensions);
  }
}
