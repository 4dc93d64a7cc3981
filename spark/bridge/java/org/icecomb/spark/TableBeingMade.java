package org.icecomb.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;

/** A table that a statement is creating, which shows its final definition. */
abstract class TableBeingMade<T extends Table> implements StagedTable, SupportsWrite {

  /** The new table. */
  final T table;

  TableBeingMade(T table) {
    this.table = table;
  }

  @Override
  public final String name() {
    return table.name();
  }

  @Override
  public final StructType schema() {
    return table.schema();
  }

  @Override
  public final Transform[] partitioning() {
    return table.partitioning();
  }

  @Override
  public final Map<String, String> properties() {
    return table.properties();
  }

  @Override
  public final String toString() {
    return name();
  }
}
