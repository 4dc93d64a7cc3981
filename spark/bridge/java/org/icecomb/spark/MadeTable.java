package org.icecomb.spark;

import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;

/**
 * A table that a catalog without staging has made already: everybody sees it while it is written, and
 * it is dropped when the statement fails.
 */
final class MadeTable implements StagedTable, SupportsWrite {

  private final TableCatalog catalog;
  private final Identifier identifier;
  private final Table table;

  MadeTable(TableCatalog catalog, Identifier identifier, Table table) {
    this.catalog = catalog;
    this.identifier = identifier;
    this.table = table;
  }

  @Override
  public String name() {
    return table.name();
  }

  @Override
  public StructType schema() {
    return table.schema();
  }

  @Override
  public Transform[] partitioning() {
    return table.partitioning();
  }

  @Override
  public Map<String, String> properties() {
    return table.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    if (table instanceof SupportsWrite writable) {
      return writable.newWriteBuilder(info);
    }
    throw SparkErrors.unsupported(
        "Table " + identifier + " cannot be written to while it is made",
        "make it first, then INSERT INTO it");
  }

  @Override
  public void commitStagedChanges() {}

  @Override
  public void abortStagedChanges() {
    catalog.dropTable(identifier);
  }

  @Override
  public String toString() {
    return name();
  }
}
