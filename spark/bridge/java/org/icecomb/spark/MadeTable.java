package org.icecomb.spark;

import java.util.Set;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;

/**
 * A table that a catalog without staging has already created: it is visible while it is written,
 * and dropped if the statement fails.
 */
final class MadeTable extends TableBeingMade<Table> {

  private final TableCatalog catalog;
  private final Identifier identifier;

  MadeTable(TableCatalog catalog, Identifier identifier, Table table) {
    super(table);
    this.catalog = catalog;
    this.identifier = identifier;
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
        "Make it first, then INSERT INTO it.");
  }

  @Override
  public void commitStagedChanges() {}

  @Override
  public void abortStagedChanges() {
    catalog.dropTable(identifier);
  }
}
