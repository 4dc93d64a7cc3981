package org.icecomb.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.read.IcecombScanBuilder;
import org.icecomb.spark.read.MetadataColumns;
import org.icecomb.spark.write.IcecombWriteBuilder;

/** One table in one state: everything it answers belongs to the metadata it was loaded with. */
public final class IcecombTable implements SupportsRead, SupportsWrite, SupportsMetadataColumns {

  private final PlannerSession session;
  private final String name;
  private final JsonNode description;
  private final StructType schemaWithIds;

  /**
   * @param description the planner's answer to load_table
   */
  IcecombTable(PlannerSession session, String name, JsonNode description) {
    this.session = session;
    this.name = name;
    this.description = description;
    this.schemaWithIds = Schemas.parse(description.get("schema"));
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String id() {
    return Json.textOrNull(description, "uuid");
  }

  @Override
  public String version() {
    return Json.textOrNull(description, "version");
  }

  @Override
  public StructType schema() {
    return Schemas.visible(schemaWithIds);
  }

  @Override
  public Transform[] partitioning() {
    return Transforms.fromJson(description.get("partitioning"));
  }

  @Override
  public Map<String, String> properties() {
    return Json.strings(description.get("properties"));
  }

  @Override
  public Set<TableCapability> capabilities() {
    return description.path("writable").asBoolean()
        ? EnumSet.of(TableCapability.BATCH_READ, TableCapability.BATCH_WRITE)
        : EnumSet.of(TableCapability.BATCH_READ);
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    return MetadataColumns.ALL;
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new IcecombScanBuilder(session, name, reference(), schemaWithIds, options);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new IcecombWriteBuilder(session, name, reference(), info);
  }

  /** The state that this object is pinned to, as the planner named it. */
  JsonNode reference() {
    return description.get("reference");
  }

  @Override
  public String toString() {
    return name;
  }
}
