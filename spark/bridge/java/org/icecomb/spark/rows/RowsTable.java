package org.icecomb.spark.rows;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.PinnedTable;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.TableDescription;

/** A table whose rows are computed by the planner, without files that tasks could read. */
public final class RowsTable implements PinnedTable, SupportsRead {

  private final TableHandle handle;
  private final TableDescription description;
  private final String chosen;

  public RowsTable(TableHandle handle, TableDescription description) {
    this(handle, description, "");
  }

  private RowsTable(TableHandle handle, TableDescription description, String chosen) {
    this.handle = handle;
    this.description = description;
    this.chosen = chosen;
  }

  @Override
  public TableHandle handle() {
    return handle;
  }

  @Override
  public RowsTable chosenBy(String how) {
    return new RowsTable(handle, description, how);
  }

  @Override
  public String name() {
    return handle.name();
  }

  /** Used by Spark 4.1 and later, like {@link #version()}. */
  public String id() {
    return description.uuid() + chosen;
  }

  public String version() {
    return description.version();
  }

  @Override
  public StructType schema() {
    return Schemas.visible(handle.schema());
  }

  @Override
  public Map<String, String> properties() {
    return description.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_READ);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new RowsScanBuilder(handle.ofCurrentUser(), options);
  }

  /** Equality as of {@link org.icecomb.spark.IcecombTable}. */
  @Override
  public boolean equals(Object other) {
    return other instanceof RowsTable table
        && chosen.equals(table.chosen)
        && handle.isStateOf(table.handle)
        && description.uuid().equals(table.description.uuid());
  }

  @Override
  public int hashCode() {
    return handle.reference().hashCode();
  }

  @Override
  public String toString() {
    return handle.name();
  }
}
