package org.icecomb.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.read.IcecombScanBuilder;
import org.icecomb.spark.read.MetadataColumns;
import org.icecomb.spark.write.RowLevelRewrite;
import org.icecomb.spark.write.TableWriteBuilder;

/** One table in one state: everything it answers belongs to the metadata it was loaded with. */
public final class IcecombTable
    implements SupportsRead,
        SupportsWrite,
        SupportsMetadataColumns,
        SupportsDeleteV2,
        SupportsRowLevelOperations {

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
        ? EnumSet.of(
            TableCapability.BATCH_READ,
            TableCapability.BATCH_WRITE,
            TableCapability.TRUNCATE,
            TableCapability.OVERWRITE_BY_FILTER,
            TableCapability.OVERWRITE_DYNAMIC)
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
    return new TableWriteBuilder(session, name, reference(), schemaWithIds, info);
  }

  /** Whether the planner can delete these rows alone; else Spark writes their files anew. */
  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    List<Condition> conditions = Condition.all(predicates, schemaWithIds);
    return conditions != null
        && askDelete("can_delete_where", conditions).get("possible").asBoolean();
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    askDelete("delete_where", Condition.all(predicates, schemaWithIds));
  }

  private JsonNode askDelete(String method, List<Condition> conditions) {
    ObjectNode request = Json.object();
    request.set("reference", reference());
    request.set("filters", Condition.toJson(conditions));
    request.set("audit", AuditSettings.now());
    try {
      return session.ask(method, request);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return () -> new RowLevelRewrite(session, name, reference(), schemaWithIds, info.command());
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
