package org.icecomb.spark;

/** A catalog: {@code spark.sql.catalog.lake=org.icecomb.spark.IcecombCatalog}. */
public final class IcecombCatalog extends CatalogWithProcedures {}
