package org.icecomb.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.convert.Changes;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.functions.PartitionFunctions;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.PlannerException;

/**
 * A catalog of Iceberg tables: {@code spark.sql.catalog.lake=org.icecomb.spark.IcecombCatalog}.
 *
 * <p>Every decision is the planner's; this class carries Spark's questions to it.
 */
public final class IcecombCatalog
    implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog {

  private String name;
  private PlannerSession session;

  @Override
  public void initialize(String catalogName, CaseInsensitiveStringMap options) {
    name = catalogName;
    session = new PlannerSession(catalogName, options.asCaseSensitiveMap());
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public String[] defaultNamespace() {
    try {
      return session.defaultNamespace();
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }

  @Override
  public Identifier[] listTables(String[] namespace) {
    JsonNode answer = askNamespace("list_tables", namespace, namespace(namespace));
    List<Identifier> tables = new ArrayList<>();
    for (JsonNode table : answer.get("tables")) {
      tables.add(Identifier.of(Json.names(table.get("namespace")), table.get("name").asText()));
    }
    return tables.toArray(new Identifier[0]);
  }

  @Override
  public boolean tableExists(Identifier table) {
    return askTable("table_exists", table, identifier(table)).get("exists").asBoolean();
  }

  @Override
  public Table loadTable(Identifier table) {
    return load(table, null, null);
  }

  /** VERSION AS OF: a snapshot id, or the name of a branch or tag. */
  @Override
  public Table loadTable(Identifier table, String version) {
    return load(table, version, null);
  }

  /** TIMESTAMP AS OF, in microseconds since 1970 UTC. */
  @Override
  public Table loadTable(Identifier table, long timestamp) {
    return load(table, null, timestamp);
  }

  private Table load(Identifier table, String version, Long timestamp) {
    ObjectNode parameters = identifier(table);
    parameters.put("version", version);
    parameters.put("timestamp_us", timestamp);
    parameters.set("audit", AuditSettings.now());
    return table(table, askTable("load_table", table, parameters));
  }

  @Override
  public Table createTable(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return createTable(table, structType(columns), partitions, properties);
  }

  @Override
  public Table createTable(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties) {
    ObjectNode parameters = definition(table, schema, partitions, properties);
    return table(table, askTable("create_table", table, parameters));
  }

  /** CREATE TABLE … AS SELECT: the table appears with its rows, or not at all. */
  @Override
  public StagedTable stageCreate(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return stage("create", table, columns, partitions, properties);
  }

  /** REPLACE TABLE: until the new table is committed the old one is as it was. */
  @Override
  public StagedTable stageReplace(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return stage("replace", table, columns, partitions, properties);
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return stage("create_or_replace", table, columns, partitions, properties);
  }

  private StagedTable stage(
      String operation,
      Identifier table,
      Column[] columns,
      Transform[] partitions,
      Map<String, String> properties) {
    ObjectNode parameters = definition(table, structType(columns), partitions, properties);
    parameters.put("operation", operation);
    JsonNode description = askTable("stage_table", table, parameters);
    return new IcecombStagedTable(session, table, table(table, description));
  }

  private static ObjectNode definition(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties) {
    ObjectNode parameters = identifier(table);
    parameters.set("schema", Schemas.toJson(Schemas.visible(schema)));
    parameters.set("partitioning", Transforms.toJson(partitions));
    parameters.set("properties", Json.object(properties));
    return parameters;
  }

  private static StructType structType(Column[] columns) {
    for (Column column : columns) {
      if (column.defaultValue() != null
          || column.generationExpression() != null
          || column.identityColumnSpec() != null) {
        throw new UnsupportedOperationException(
            "Column "
                + column.name()
                + " has a default, generated or identity value: icecomb does not support these yet");
      }
    }
    return CatalogV2Util.v2ColumnsToStructType(columns);
  }

  @Override
  public Table alterTable(Identifier table, TableChange... changes) {
    ObjectNode parameters = identifier(table);
    parameters.set("changes", Changes.toJson(changes));
    return table(table, askTable("alter_table", table, parameters));
  }

  @Override
  public boolean dropTable(Identifier table) {
    return drop(table, false);
  }

  @Override
  public boolean purgeTable(Identifier table) {
    return drop(table, true);
  }

  private boolean drop(Identifier table, boolean purge) {
    ObjectNode parameters = identifier(table).put("purge", purge);
    return askTable("drop_table", table, parameters).get("dropped").asBoolean();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    String[] namespace = to.namespace();
    // RENAME TO catalog.db.name hands the catalog's name over inside the namespace.
    if (namespace.length > 1 && namespace[0].equals(name)) {
      namespace = Arrays.copyOfRange(namespace, 1, namespace.length);
    }
    Identifier target =
        Identifier.of(namespace.length == 0 ? from.namespace() : namespace, to.name());
    ObjectNode parameters = Json.object();
    parameters.set("from", identifier(from));
    parameters.set("to", identifier(target));
    try {
      session.ask("rename_table", parameters);
    } catch (PlannerException e) {
      boolean aboutTarget =
          e.type().equals("TableAlreadyExistsError") || e.type().equals("NoSuchNamespaceError");
      throw SparkErrors.ofTable(e, aboutTarget ? target : from);
    }
  }

  @Override
  public String[][] listNamespaces() {
    return listNamespaces(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] parent) {
    ObjectNode parameters = Json.object();
    parameters.set("parent", Json.array(parent));
    JsonNode answer = askNamespace("list_namespaces", parent, parameters);
    List<String[]> namespaces = new ArrayList<>();
    answer.get("namespaces").forEach(namespace -> namespaces.add(Json.names(namespace)));
    return namespaces.toArray(new String[0][]);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    JsonNode answer = askNamespace("load_namespace", namespace, namespace(namespace));
    return Json.strings(answer.get("properties"));
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> properties) {
    ObjectNode parameters = namespace(namespace);
    parameters.set("properties", Json.object(properties));
    askNamespace("create_namespace", namespace, parameters);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    ObjectNode parameters = namespace(namespace);
    ObjectNode set = parameters.putObject("set");
    ArrayNode remove = parameters.putArray("remove");
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty property) {
        set.put(property.property(), property.value());
      } else if (change instanceof NamespaceChange.RemoveProperty property) {
        remove.add(property.property());
      }
    }
    askNamespace("alter_namespace", namespace, parameters);
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    ObjectNode parameters = namespace(namespace).put("cascade", cascade);
    return askNamespace("drop_namespace", namespace, parameters).get("dropped").asBoolean();
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    return PartitionFunctions.serves(namespace)
        ? PartitionFunctions.names().stream()
            .map(function -> Identifier.of(namespace, function))
            .toArray(Identifier[]::new)
        : new Identifier[0];
  }

  @Override
  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    UnboundFunction found =
        PartitionFunctions.serves(function.namespace())
            ? PartitionFunctions.find(function.name())
            : null;
    if (found == null) {
      throw new NoSuchFunctionException(function);
    }
    return found;
  }

  private IcecombTable table(Identifier table, JsonNode description) {
    return new IcecombTable(
        session, name + "." + String.join(".", table.namespace()) + "." + table.name(), description);
  }

  private JsonNode askTable(String method, Identifier table, ObjectNode parameters) {
    try {
      return session.ask(method, parameters);
    } catch (PlannerException e) {
      throw SparkErrors.ofTable(e, table);
    }
  }

  private JsonNode askNamespace(String method, String[] namespace, ObjectNode parameters) {
    try {
      return session.ask(method, parameters);
    } catch (PlannerException e) {
      throw SparkErrors.ofNamespace(e, namespace);
    }
  }

  private static ObjectNode identifier(Identifier table) {
    return namespace(table.namespace()).put("name", table.name());
  }

  private static ObjectNode namespace(String[] namespace) {
    ObjectNode parameters = Json.object();
    parameters.set("namespace", Json.array(namespace));
    return parameters;
  }
}
