package org.icecomb.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchFunctionException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.CatalogExtension;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.FunctionCatalog;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.NamespaceChange;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.connector.catalog.SupportsNamespaces;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.catalog.TableCatalogCapability;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.apache.spark.sql.connector.catalog.TableWritePrivilege;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.functions.PartitionFunctions;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.statement.StatementCatalog;

/**
 * Spark's own catalog with Iceberg tables in it, each under the name it has in the metastore.
 *
 * <p>icecomb serves tables that are Iceberg tables in the metastore, or are created {@code USING
 * iceberg} or {@code USING icecomb}. Namespaces, views, persistent functions and all other tables
 * stay Spark's.
 */
abstract class BaseSessionCatalog
    implements CatalogExtension, StagingTableCatalog, StatementCatalog {

  private static final Set<String> PROVIDERS = Set.of("iceberg", "icecomb");

  /** Errors of the planner that end the statement, whatever table it names. */
  private static final Set<String> FINAL =
      Set.of(PlannerException.CANCELED, "ConfigurationError");

  /** Errors of a planner or metastore connection that will recur for the next table. */
  private static final Set<String> FAILURES = Set.of(PlannerException.START, "MetastoreError");

  private final IcecombCatalog ours = new IcecombCatalog();
  private final Set<String> seenAsOurs = ConcurrentHashMap.newKeySet();
  private CatalogPlugin delegate;
  private TableCatalog sparks;
  private volatile boolean oursFails;

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    ours.initialize(name, options);
  }

  @Override
  public void setDelegateCatalog(CatalogPlugin catalog) {
    delegate = catalog;
    if (!(catalog instanceof TableCatalog tables)) {
      // Spark 3.5 resolves DEFAULT clauses where there is nothing but built-in functions
      return;
    }
    sparks = tables;
    String own = "spark.sql.catalogImplementation";
    if (!SparkSession.active().sparkContext().conf().get(own, "in-memory").equals("hive")) {
      System.err.println(
          "icecomb: Spark runs without Hive support: its databases and SHOW TABLES are not those of "
              + "the metastore, which spark_catalog reads Iceberg tables from; set " + own + "=hive");
    }
  }

  final IcecombCatalog ours() {
    return ours;
  }

  @Override
  public boolean keepsViews() {
    return false;
  }

  @Override
  public PlannerSession session() {
    return ours.session();
  }

  final TableCatalog sparks() {
    return sparks;
  }

  private SupportsNamespaces namespaces() {
    return (SupportsNamespaces) sparks;
  }

  private FunctionCatalog functions() {
    return (FunctionCatalog) delegate;
  }

  @Override
  public String name() {
    return ours.name();
  }

  @Override
  public Set<TableCatalogCapability> capabilities() {
    return sparks.capabilities();
  }

  @Override
  public boolean useNullableQuerySchema() {
    return ours.useNullableQuerySchema();
  }

  /** A way to load a table from a catalog. */
  @FunctionalInterface
  private interface Loading {
    Table by(TableCatalog catalog) throws NoSuchTableException;
  }

  @Override
  public Table loadTable(Identifier table) throws NoSuchTableException {
    return load(table, catalog -> catalog.loadTable(table));
  }

  @Override
  public Table loadTable(Identifier table, Set<TableWritePrivilege> privileges)
      throws NoSuchTableException {
    return load(table, catalog -> catalog.loadTable(table, privileges));
  }

  @Override
  public Table loadTable(Identifier table, String version) throws NoSuchTableException {
    return load(table, catalog -> catalog.loadTable(table, version));
  }

  @Override
  public Table loadTable(Identifier table, long timestamp) throws NoSuchTableException {
    return load(table, catalog -> catalog.loadTable(table, timestamp));
  }

  /** Tries icecomb first: Spark's own catalog lists Iceberg tables but cannot read them. */
  private Table load(Identifier table, Loading loading) throws NoSuchTableException {
    if (oursFails && isKnownToSpark(table) && !mayBeIceberg(table)) {
      return loading.by(sparks);
    }
    try {
      Table found = loading.by(ours);
      oursFails = false;
      seenAsOurs.add(key(table));
      return found;
    } catch (Exception refusal) {
      return loadSparks(table, loading, refusal);
    }
  }

  private Table loadSparks(Identifier table, Loading loading, Exception refusal)
      throws NoSuchTableException {
    boolean unknown = isUnknown(refusal);
    if (!isSparks(table)) {
      throw SparkErrors.unchecked(unknown ? new NoSuchTableException(table) : refusal);
    }
    if (!unknown && mayBeIceberg(table)) {
      throw SparkErrors.unchecked(refusal);
    }
    if (seenAsOurs.remove(key(table))) {
      // Spark's cached entry of the name is older
      sparks.invalidateTable(table);
    }
    Table found = loading.by(sparks);
    if (isIceberg(found)) {
      throw refusal instanceof NoSuchTableException
          ? elsewhere(table)
          : SparkErrors.unchecked(refusal);
    }
    return found;
  }

  /**
   * Whether icecomb's catalog answered that it has no such table; otherwise it is unknown, and only
   * tables that Spark's own catalog knows not to be Iceberg tables are still served.
   */
  private boolean isUnknown(Exception refusal) {
    if (refusal instanceof NoSuchTableException || refusal instanceof NoSuchNamespaceException) {
      oursFails = false;
      return true;
    }
    String type = refusal.getCause() instanceof PlannerException cause ? cause.type() : null;
    if (type == null || FINAL.contains(type)) {
      throw SparkErrors.unchecked(refusal);
    }
    oursFails = FAILURES.contains(type);
    return type.equals("NoSuchIcebergTableError");
  }

  private static RuntimeException elsewhere(Identifier table) {
    return SparkErrors.unsupported(
        "Table " + table + " is an Iceberg table of the metastore of Spark's own Hive support, and "
            + "the metastore of icecomb's session catalog does not have it",
        "Leave spark.sql.catalog.spark_catalog.uri out: hive.metastore.uris is taken then.");
  }

  /** Spark's own catalog has one level of namespaces; names below a table are icecomb's only. */
  private static boolean isSparks(Identifier table) {
    return table.namespace().length == 1;
  }

  private static String key(Identifier table) {
    return table.toString().toLowerCase(Locale.ROOT);
  }

  private boolean isKnownToSpark(Identifier table) {
    return isSparks(table) && sparks.tableExists(table);
  }

  /** Whether the entry's own parameters say so: {@code properties()} have another table_type. */
  private static boolean isIceberg(Table table) {
    return table instanceof V1Table entry
        && entry.v1Table().properties().get("table_type").exists("iceberg"::equalsIgnoreCase);
  }

  /**
   * Whether it is one, or unknown: Spark's own catalog cannot load every entry, for example those
   * with Iceberg's storage handler.
   */
  private boolean mayBeIceberg(Identifier table) throws NoSuchTableException {
    try {
      return isIceberg(sparks.loadTable(table));
    } catch (NoSuchTableException e) {
      throw e;
    } catch (Exception e) {
      return true;
    }
  }

  /** If icecomb's catalog cannot tell, Spark's own catalog decides. */
  private boolean isOurs(Identifier table) throws NoSuchTableException {
    if (!isSparks(table)) {
      return true;
    }
    try {
      boolean found = ours.tableExists(table);
      oursFails = false;
      return found;
    } catch (Exception refusal) {
      return !isUnknown(refusal) && sparks.tableExists(table) && mayBeIceberg(table);
    }
  }

  private TableCatalog catalogOf(Identifier table) {
    try {
      return isOurs(table) ? ours : sparks;
    } catch (NoSuchTableException e) {
      return sparks;
    }
  }

  @Override
  public boolean tableExists(Identifier table) {
    try {
      if (isKnownToSpark(table)) {
        return true;
      }
    } catch (Exception unloadable) {
      // up to Spark 4.1 it loads the table, which fails by Iceberg's storage handler
    }
    return catalogOf(table).tableExists(table);
  }

  @Override
  public Identifier[] listTables(String[] namespace) throws NoSuchNamespaceException {
    return sparks.listTables(namespace);
  }

  @Override
  public void invalidateTable(Identifier table) {
    ours.invalidateTable(table);
    if (isSparks(table)) {
      sparks.invalidateTable(table);
    }
  }

  private static boolean makesOurs(Map<String, String> properties) {
    return makesOurs(properties.get(PROP_PROVIDER));
  }

  /**
   * Whether {@code USING provider} creates an Iceberg table; the provider is null without USING.
   */
  public static boolean makesOurs(String provider) {
    return provider != null && PROVIDERS.contains(provider.toLowerCase(Locale.ROOT));
  }

  private TableCatalog catalogFor(Map<String, String> properties) {
    return makesOurs(properties) ? ours : sparks;
  }

  @Override
  public Table createTable(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return catalogFor(properties).createTable(table, columns, partitions, properties);
  }

  @Override
  public Table createTable(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return catalogFor(properties).createTable(table, schema, partitions, properties);
  }

  @Override
  public boolean makesLike(String provider, Table source) {
    return provider == null ? source instanceof IcecombTable : makesOurs(provider);
  }

  @Override
  public Table createLike(
      Identifier table,
      StructType columns,
      Transform[] partitions,
      Map<String, String> properties,
      Table source)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return ours.createLike(table, columns, partitions, properties, source);
  }

  @Override
  public StagedTable stageCreate(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return makesOurs(properties)
        ? ours.stageCreate(table, columns, partitions, properties)
        : made(table, sparks.createTable(table, columns, partitions, properties));
  }

  @Override
  public StagedTable stageCreate(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws TableAlreadyExistsException, NoSuchNamespaceException {
    return makesOurs(properties)
        ? ours.stageCreate(table, schema, partitions, properties)
        : made(table, sparks.createTable(table, schema, partitions, properties));
  }

  @Override
  public StagedTable stageReplace(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    if (makesOurs(properties)) {
      return ours.stageReplace(table, columns, partitions, properties);
    }
    if (!dropForReplacement(table)) {
      throw new NoSuchTableException(table);
    }
    return remade(table, () -> sparks.createTable(table, columns, partitions, properties));
  }

  @Override
  public StagedTable stageReplace(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException, NoSuchTableException {
    if (makesOurs(properties)) {
      return ours.stageReplace(table, schema, partitions, properties);
    }
    if (!dropForReplacement(table)) {
      throw new NoSuchTableException(table);
    }
    return remade(table, () -> sparks.createTable(table, schema, partitions, properties));
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier table, Column[] columns, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException {
    if (makesOurs(properties)) {
      return ours.stageCreateOrReplace(table, columns, partitions, properties);
    }
    dropForReplacement(table);
    return remade(table, () -> sparks.createTable(table, columns, partitions, properties));
  }

  @Override
  public StagedTable stageCreateOrReplace(
      Identifier table, StructType schema, Transform[] partitions, Map<String, String> properties)
      throws NoSuchNamespaceException {
    if (makesOurs(properties)) {
      return ours.stageCreateOrReplace(table, schema, partitions, properties);
    }
    dropForReplacement(table);
    return remade(table, () -> sparks.createTable(table, schema, partitions, properties));
  }

  private StagedTable made(Identifier table, Table found) {
    return new MadeTable(sparks, table, found);
  }

  private StagedTable remade(Identifier table, Callable<Table> making) {
    try {
      return made(table, making.call());
    } catch (Exception e) {
      throw SparkErrors.unchecked(e);
    }
  }

  /** Tables of Spark's own catalog are replaced in two steps, which could lose an Iceberg table. */
  private boolean dropForReplacement(Identifier table) {
    if (catalogOf(table) == ours) {
      throw SparkErrors.unsupported(
          "Table " + table + " is an Iceberg table: another one cannot replace it",
          "Say USING iceberg, or drop it first.");
    }
    return sparks.dropTable(table);
  }

  @Override
  public Table alterTable(Identifier table, TableChange... changes) throws NoSuchTableException {
    return catalogOf(table).alterTable(table, changes);
  }

  @Override
  public boolean dropTable(Identifier table) {
    return catalogOf(table).dropTable(table);
  }

  @Override
  public boolean purgeTable(Identifier table) {
    return catalogOf(table).purgeTable(table);
  }

  @Override
  public void renameTable(Identifier from, Identifier to)
      throws NoSuchTableException, TableAlreadyExistsException {
    catalogOf(from).renameTable(from, to);
  }

  @Override
  public String[] defaultNamespace() {
    return delegate.defaultNamespace();
  }

  @Override
  public String[][] listNamespaces() throws NoSuchNamespaceException {
    return namespaces().listNamespaces();
  }

  @Override
  public String[][] listNamespaces(String[] parent) throws NoSuchNamespaceException {
    return namespaces().listNamespaces(parent);
  }

  @Override
  public boolean namespaceExists(String[] namespace) {
    return namespaces().namespaceExists(namespace);
  }

  @Override
  public Map<String, String> loadNamespaceMetadata(String[] namespace)
      throws NoSuchNamespaceException {
    return namespaces().loadNamespaceMetadata(namespace);
  }

  @Override
  public void createNamespace(String[] namespace, Map<String, String> properties)
      throws NamespaceAlreadyExistsException {
    namespaces().createNamespace(namespace, properties);
  }

  @Override
  public void alterNamespace(String[] namespace, NamespaceChange... changes)
      throws NoSuchNamespaceException {
    namespaces().alterNamespace(namespace, changes);
  }

  /** CASCADE of Spark's own catalog deletes the namespace's folder with Iceberg tables' files. */
  @Override
  public boolean dropNamespace(String[] namespace, boolean cascade)
      throws NoSuchNamespaceException, NonEmptyNamespaceException {
    if (cascade && namespaces().namespaceExists(namespace)) {
      List<Identifier> found = listOurs(namespace);
      if (!found.isEmpty()) {
        throw SparkErrors.unsupported(
            "Namespace " + String.join(".", namespace) + " has " + found.size()
                + " Iceberg tables, as " + found.get(0).name()
                + ": CASCADE would delete their files, whoever else uses them",
            "Drop its Iceberg tables one by one first.");
      }
    }
    return namespaces().dropNamespace(namespace, cascade);
  }

  private List<Identifier> listOurs(String[] namespace) throws NoSuchNamespaceException {
    try {
      return List.of(ours.listTables(namespace));
    } catch (Exception refusal) {
      List<Identifier> found = new ArrayList<>();
      if (!isUnknown(refusal)) {
        for (Identifier each : sparks.listTables(namespace)) {
          if (catalogOf(each) == ours) {
            found.add(each);
          }
        }
      }
      return found;
    }
  }

  @Override
  public Identifier[] listFunctions(String[] namespace) throws NoSuchNamespaceException {
    return PartitionFunctions.serves(namespace)
        ? ours.listFunctions(namespace)
        : functions().listFunctions(namespace);
  }

  @Override
  public UnboundFunction loadFunction(Identifier function) throws NoSuchFunctionException {
    try {
      return ours.loadFunction(function);
    } catch (NoSuchFunctionException e) {
      return functions().loadFunction(function);
    }
  }
}
