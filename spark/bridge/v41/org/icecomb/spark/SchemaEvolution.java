package org.icecomb.spark;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.TableCapability;

/** Statements WITH SCHEMA EVOLUTION: Spark alters the table before it writes. */
final class SchemaEvolution {

  static final Set<TableCapability> CAPABILITIES =
      Set.of(TableCapability.AUTOMATIC_SCHEMA_EVOLUTION);

  private SchemaEvolution() {}
}
