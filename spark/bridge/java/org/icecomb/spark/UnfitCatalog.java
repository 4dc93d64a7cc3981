package org.icecomb.spark;

import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * In the place of our catalogs where the jar is for another Spark: there the classes of these may
 * not even load, and nobody would learn why. Everything else in the session works.
 */
public final class UnfitCatalog implements CatalogPlugin {

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    throw new UnsupportedOperationException(FittingSpark.complaint());
  }

  @Override
  public String name() {
    return "unfit";
  }
}
