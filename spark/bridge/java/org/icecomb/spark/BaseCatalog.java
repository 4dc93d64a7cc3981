package org.icecomb.spark;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Function;
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
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.convert.Changes;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.functions.PartitionFunctions;
import org.icecomb.spark.functions.VersionFunction;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.AlterNamespace;
import org.icecomb.spark.planner.Protocol.AlterTable;
import org.icecomb.spark.planner.Protocol.CreateNamespace;
import org.icecomb.spark.planner.Protocol.CreateTable;
import org.icecomb.spark.planner.Protocol.CreateTableLike;
import org.icecomb.spark.planner.Protocol.Done;
import org.icecomb.spark.planner.Protocol.DropNamespace;
import org.icecomb.spark.planner.Protocol.DropTable;
import org.icecomb.spark.planner.Protocol.Dropped;
import org.icecomb.spark.planner.Protocol.Exists;
import org.icecomb.spark.planner.Protocol.ListNamespaces;
import org.icecomb.spark.planner.Protocol.ListTables;
import org.icecomb.spark.planner.Protocol.LoadNamespace;
import org.icecomb.spark.planner.Protocol.LoadTable;
import org.icecomb.spark.planner.Protocol.NamespaceProperties;
import org.icecomb.spark.planner.Protocol.Namespaces;
import org.icecomb.spark.planner.Protocol.RenameTable;
import org.icecomb.spark.planner.Protocol.Request;
import org.icecomb.spark.planner.Protocol.StageTable;
import org.icecomb.spark.planner.Protocol.NewTable;
import org.icecomb.spark.planner.Protocol.TableDescription;
import org.icecomb.spark.planner.Protocol.TableExists;
import org.icecomb.spark.planner.Protocol.TableName;
import org.icecomb.spark.planner.Protocol.TableNames;
import org.icecomb.spark.rows.RowsTable;
import org.icecomb.spark.statement.StatementCatalog;

/**
 * The part of a catalog of Iceberg tables that is common to all Sparks; {@code IcecombCatalog} adds
 * the interfaces of the Spark it is compiled for.
 *
 * <p>Every decision is the planner's; this class passes Spark's requests to it.
 */
abstract class BaseCatalog
    implements StagingTableCatalog, SupportsNamespaces, FunctionCatalog, StatementCatalog {

  private String name;
  private PlannerSession session;
  private boolean nullableQuerySchema;

  /** Default values, for the tables whose format version has them. */
  @Override
  public Set<TableCatalogCapability> capabilities() {
    return Set.of(TableCatalogCapability.SUPPORT_COLUMN_DEFAULT_VALUE);
  }

  @Override
  public void initialize(String catalogName, CaseInsensitiveStringMap options) {
    String complaint = FittingSpark.complaint();
    if (complaint != null) {
      throw new UnsupportedOperationException(complaint);
    }
    name = catalogName;
    nullableQuerySchema = options.getBoolean("use-nullable-query-schema", true);
    session = new PlannerSession(catalogName, options.asCaseSensitiveMap());
  }

  @Override
  public String name() {
    return name;
  }

  /** Whether the columns of CREATE TABLE … AS SELECT may all be null. */
  @Override
  public boolean useNullableQuerySchema() {
    return nullableQuerySchema;
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
    TableNames found =
        askNamespace(
            namespace, catalog -> new ListTables(catalog, List.of(namespace)), TableNames.class);
    return found.tables().stream()
        .map(table -> Identifier.of(table.namespace().toArray(new String[0]), table.name()))
        .toArray(Identifier[]::new);
  }

  @Override
  public boolean tableExists(Identifier table) {
    return askTable(table, catalog -> new TableExists(catalog, name(table)), Exists.class).exists();
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

  /** REFRESH TABLE, which procedures that change a table end with. */
  @Override
  public void invalidateTable(Identifier table) {
    TableName found = name(table);
    List<String> parts = new ArrayList<>(found.namespace());
    parts.add(found.name());
    CachedTables.refresh(null, name, parts, false);
  }

  private Table load(Identifier table, String version, Long timestamp) {
    TableDescription found =
        askTable(
            table,
            catalog -> new LoadTable(catalog, name(table), version, timestamp, IcebergSettings.audit()),
            TableDescription.class);
    TableHandle handle = TableHandle.of(session, shown(table), found);
    return found.hasFiles() ? new IcecombTable(handle, found) : new RowsTable(handle, found);
  }

  @Override
  public Table createTable(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return createTable(table, structType(columns), partitions, properties);
  }

  @Override
  public Table createTable(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties) {
    NewTable definition = definition(table, schema, partitions, properties);
    return described(table, catalog -> new CreateTable(catalog, definition));
  }

  @Override
  public Table createLike(
      Identifier table,
      StructType columns,
      Transform[] partitions,
      Map<String, String> properties,
      Table source) {
    if (!(source instanceof IcecombTable known)) {
      return createTable(table, columns, partitions, properties);
    }
    if (!known.handle().session().isBeside(session)) {
      throw SparkErrors.unsupported(
          "CREATE TABLE … LIKE " + known + ": its catalog is served by another Python",
          "Give both catalogs the same option python.");
    }
    return described(
        table,
        catalog ->
            new CreateTableLike(catalog, name(table), known.handle().reference(), properties));
  }

  /** CREATE TABLE … AS SELECT: the table appears with its rows or not at all. */
  @Override
  public StagedTable stageCreate(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return stage("create", table, structType(columns), partitions, properties);
  }

  @Override
  public StagedTable stageCreate(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties) {
    return stage("create", table, schema, partitions, properties);
  }

  /** REPLACE TABLE: the old table stays unchanged until the new one is committed. */
  @Override
  public StagedTable stageReplace(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return stage("replace", table, structType(columns), partitions, properties);
  }

  @Override
  public StagedTable stageReplace(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties) {
    return stage("replace", table, schema, partitions, properties);
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties) {
    return stage("create_or_replace", table, structType(columns), partitions, properties);
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties) {
    return stage("create_or_replace", table, schema, partitions, properties);
  }

  private StagedTable stage(
      String operation,
      Identifier table,
      StructType schema,
      Transform[] partitions,
      Map<String, String> properties) {
    NewTable definition = definition(table, schema, partitions, properties);
    IcecombTable staged =
        described(table, catalog -> new StageTable(catalog, operation, definition));
    return new IcecombStagedTable(session, table, staged);
  }

  private static NewTable definition(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties) {
    return new NewTable(
        name(table),
        Schemas.toJson(Schemas.visible(schema)),
        Transforms.toJson(partitions),
        properties);
  }

  private static StructType structType(Column[] columns) {
    for (Column column : columns) {
      if (column.generationExpression() != null || SparkVersion.hasIdentity(column)) {
        throw new UnsupportedOperationException(
            "Column "
                + column.name()
                + " has a generated or identity value: icecomb does not support these yet");
      }
    }
    return CatalogV2Util.v2ColumnsToStructType(columns);
  }

  @Override
  public Table alterTable(Identifier table, TableChange... changes) {
    try {
      return described(
          table, catalog -> new AlterTable(catalog, name(table), Changes.toJson(changes)));
    } catch (IllegalArgumentException e) {
      throw SparkErrors.ofChange(e, changes);
    }
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
    return askTable(table, catalog -> new DropTable(catalog, name(table), purge), Dropped.class)
        .dropped();
  }

  @Override
  public void renameTable(Identifier from, Identifier to) {
    Identifier target = renamed(from, to);
    try {
      session.ask(catalog -> new RenameTable(catalog, name(from), name(target)), Done.class);
    } catch (PlannerException e) {
      boolean aboutTarget =
          e.type().equals("TableAlreadyExistsError") || e.type().equals("NoSuchNamespaceError");
      throw SparkErrors.ofTable(e, aboutTarget ? target : from);
    }
  }

  /** The new name of a table or view, relative to this catalog. */
  final Identifier renamed(Identifier from, Identifier to) {
    String[] namespace = to.namespace();
    // RENAME TO catalog.db.name passes the catalog's name as part of the namespace.
    if (namespace.length > 1 && namespace[0].equals(name)) {
      namespace = Arrays.copyOfRange(namespace, 1, namespace.length);
    }
    return Identifier.of(namespace.length == 0 ? from.namespace() : namespace, to.name());
  }

  @Override
  public String[][] listNamespaces() {
    return listNamespaces(new String[0]);
  }

  @Override
  public String[][] listNamespaces(String[] parent) {
    Namespaces found =
        askNamespace(
            parent, catalog -> new ListNamespaces(catalog, List.of(parent)), Namespaces.class);
    return found.namespaces().stream()
        .map(namespace -> namespace.toArray(new String[0]))
        .toArray(String[][]::new);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace) {
    return askNamespace(
            namespace,
            catalog -> new LoadNamespace(catalog, List.of(namespace)),
            NamespaceProperties.class)
        .properties();
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> properties) {
    askNamespace(
        namespace,
        catalog -> new CreateNamespace(catalog, List.of(namespace), properties),
        Done.class);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes) {
    Map<String, String> set = new LinkedHashMap<>();
    List<String> remove = new ArrayList<>();
    for (NamespaceChange change : changes) {
      if (change instanceof NamespaceChange.SetProperty property) {
        set.put(property.property(), property.value());
      } else if (change instanceof NamespaceChange.RemoveProperty property) {
        remove.add(property.property());
      }
    }
    askNamespace(
        namespace,
        catalog -> new AlterNamespace(catalog, List.of(namespace), set, remove),
        Done.class);
  }

  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade) {
    return askNamespace(
            namespace,
            catalog -> new DropNamespace(catalog, List.of(namespace), cascade),
            Dropped.class)
        .dropped();
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) {
    if (!PartitionFunctions.serves(namespace)) {
      loadNamespaceMetadata(namespace);
      return new Identifier[0];
    }
    List<String> names = PartitionFunctions.names();
    names.add(VersionFunction.NAME);
    return names.stream()
        .map(function -> Identifier.of(namespace, function))
        .toArray(Identifier[]::new);
  }

  @Override
  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    UnboundFunction found = null;
    if (PartitionFunctions.serves(function.namespace())) {
      found =
          function.name().equalsIgnoreCase(VersionFunction.NAME)
              ? new VersionFunction(version())
              : PartitionFunctions.find(function.name());
    }
    if (found == null) {
      throw new NoSuchFunctionException(function);
    }
    return found;
  }

  private String version() {
    try {
      return session.version();
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }

  private IcecombTable described(Identifier table, Function<String, Request> request) {
    TableDescription found = askTable(table, request, TableDescription.class);
    return new IcecombTable(TableHandle.of(session, shown(table), found), found);
  }

  final String shown(Identifier table) {
    List<String> parts = new ArrayList<>(List.of(name));
    parts.addAll(List.of(table.namespace()));
    parts.add(table.name());
    return String.join(".", parts);
  }

  @Override
  public final PlannerSession session() {
    return session;
  }

  final <T extends Record> T askTable(
      Identifier table, Function<String, Request> request, Class<T> kind) {
    try {
      return session.ask(request, kind);
    } catch (PlannerException e) {
      throw SparkErrors.ofTable(e, table);
    }
  }

  final <T extends Record> T askNamespace(
      String[] namespace, Function<String, Request> request, Class<T> kind) {
    try {
      return session.ask(request, kind);
    } catch (PlannerException e) {
      throw SparkErrors.ofNamespace(e, namespace);
    }
  }

  static TableName name(Identifier table) {
    return new TableName(List.of(table.namespace()), table.name());
  }
}
