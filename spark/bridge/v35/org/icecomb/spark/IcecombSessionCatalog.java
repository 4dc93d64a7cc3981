package org.icecomb.spark;

/**
 * The session catalog: {@code
 * spark.sql.catalog.spark_catalog=org.icecomb.spark.IcecombSessionCatalog}.
 */
public final class IcecombSessionCatalog extends BaseSessionCatalog {}
