package org.icecomb.spark;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;

/** Statements WITH SCHEMA EVOLUTION, which this Spark does not have for tables of catalogs. */
final class SchemaEvolution {

  static final Set<TableCapability> CAPABILITIES = Set.of();

  private SchemaEvolution() {}
}
