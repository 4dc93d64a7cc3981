package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.List;
import java.util.Map;

/**
 * All requests of the bridge and answers of the planner.
 *
 * <p>The same messages are documented in the planner's module {@code protocol}; a test compares the
 * two. Members have the same names in snake case, and a method is named like its request. Members
 * that the bridge only returns, or that another class reads or writes, are {@link JsonNode} here.
 */
public final class Protocol {

  /** The version of the protocol; bridge and planner must agree. */
  static final int VERSION = 38;

  private Protocol() {}

  /** A request to the planner. */
  public sealed interface Request permits Repeatable, Unrepeatable {}

  /** A request that may be executed twice: it changes nothing, or is idempotent. */
  public sealed interface Repeatable extends Request {}

  /** A request that changes something: if its answer is lost, it may have been executed. */
  public sealed interface Unrepeatable extends Request {}

  public record Done() {}

  // Catalogs and namespaces

  public record Environment(
      String metastoreUris,
      String applicationId,
      String sparkVersion,
      Map<String, String> hadoop,
      String principal,
      String keytab,
      String applicationName) {

    /** Omits the settings, which may be secret. */
    @Override
    public String toString() {
      return applicationId;
    }
  }

  public record Identity(
      String user, String realUser, boolean login, boolean secured, List<String> tokens) {

    /** A key that identifies the user. */
    public String key() {
      return realUser == null ? user : user + " by " + realUser;
    }

    /** Omits the tokens, which are secret. */
    @Override
    public String toString() {
      return key();
    }
  }

  public record OpenCatalog(
      String name, Map<String, String> options, Environment environment, Identity identity)
      implements Repeatable {}

  public record OpenedCatalog(
      String catalog,
      List<String> defaultNamespace,
      String version,
      Map<String, String> hadoop) {}

  public record ListNamespaces(String catalog, List<String> parent) implements Repeatable {}

  public record Namespaces(List<List<String>> namespaces) {}

  public record LoadNamespace(String catalog, List<String> namespace) implements Repeatable {}

  public record NamespaceProperties(Map<String, String> properties) {}

  public record CreateNamespace(
      String catalog, List<String> namespace, Map<String, String> properties)
      implements Unrepeatable {}

  public record AlterNamespace(
      String catalog, List<String> namespace, Map<String, String> set, List<String> remove)
      implements Unrepeatable {}

  public record DropNamespace(String catalog, List<String> namespace, boolean cascade)
      implements Unrepeatable {}

  public record Dropped(boolean dropped) {}

  // Tables

  public record TableName(List<String> namespace, String name) {}

  public record Audit(String wapId, String wapBranch) {}

  public record ListTables(String catalog, List<String> namespace) implements Repeatable {}

  public record TableNames(List<TableName> tables) {}

  public record TableExists(String catalog, TableName table) implements Repeatable {}

  public record Exists(boolean exists) {}

  public record LoadTable(
      String catalog, TableName table, String version, Long timestampUs, Audit audit)
      implements Repeatable {}

  public record TableDescription(
      JsonNode reference,
      JsonNode schema,
      JsonNode partitioning,
      JsonNode partitionType,
      Map<String, String> properties,
      String uuid,
      String identity,
      String version,
      boolean hasFiles,
      boolean takesAnyRows,
      boolean evolves,
      String overwriteMode,
      boolean hasLineage,
      List<String> table,
      boolean below) {}

  public record TableDefinition(
      TableName table, JsonNode schema, JsonNode partitioning, Map<String, String> properties) {}

  public record CreateTable(String catalog, TableDefinition definition) implements Unrepeatable {}

  public record CreateTableLike(
      String catalog, TableName table, JsonNode source, Map<String, String> properties)
      implements Unrepeatable {}

  public record StageTable(String catalog, String operation, TableDefinition definition)
      implements Repeatable {}

  public record AlterTable(String catalog, TableName table, JsonNode changes)
      implements Unrepeatable {}

  public record DropTable(String catalog, TableName table, boolean purge) implements Unrepeatable {}

  public record RenameTable(String catalog, TableName table, TableName target)
      implements Unrepeatable {}

  // Scans

  public record SplitHints(int parallelism, Long splitBytes, Long openCostBytes) {}

  public record Selection(
      JsonNode reference,
      JsonNode filters,
      boolean caseSensitive,
      Map<String, String> options,
      Map<String, String> settings) {}

  public record TopRows(int fieldId, boolean descending, boolean nullsFirst, int count) {}

  public record PlanScan(
      Selection selection,
      List<String> files,
      List<Integer> fieldIds,
      SplitHints hints,
      String changes,
      Integer limit,
      TopRows top,
      boolean estimatesColumns)
      implements Repeatable {}

  public record DecideFilters(Selection selection) implements Repeatable {}

  public record DecidedFilters(List<Boolean> whole) {}

  public record AggregateFunction(String name, List<String> column) {}

  public record AggregateFiles(
      Selection selection, List<List<String>> groupBy, List<AggregateFunction> functions)
      implements Repeatable {}

  public record Aggregated(List<JsonNode> rows) {}

  public record KeyColumns(List<Integer> fieldIds, JsonNode schema) {}

  public record DeleteFile(String path, String format, long rows, Long offset, Integer length)
      implements Serializable {}

  public record EqualityDeletes(int keys, List<Integer> files) {}

  public record PositionDeleteFiles(String path, List<Integer> files) {}

  public record DeletePlace(String file, int partition, String folder, boolean hasOwn)
      implements Serializable {}

  public record PlannedFile(
      String path,
      String format,
      int specId,
      Map<String, JsonNode> constants,
      Integer deletes,
      PositionDeleteFiles positionDeleteFiles,
      List<EqualityDeletes> equalityDeletes,
      Map<String, JsonNode> partition,
      JsonNode entry,
      DeletePlace deletePlace) {}

  public record FileRange(int file, long start, long length, boolean last, long rows) {}

  public record ColumnEstimate(long distinct, Long nulls, JsonNode min, JsonNode max) {}

  public record ScanStatistics(long rows, long bytes, Map<String, ColumnEstimate> columns) {}

  public record GroupingField(JsonNode transform, JsonNode type) {}

  public record ScanPage(
      List<PlannedFile> files,
      List<List<FileRange>> partitions,
      List<String> deletes,
      List<DeleteFile> deleteFiles,
      List<KeyColumns> keys,
      List<List<JsonNode>> groupingKeys) {}

  public record ScanPlan(
      JsonNode nameMapping,
      ScanStatistics statistics,
      boolean vectorized,
      Integer batchRows,
      List<String> partitionColumns,
      List<GroupingField> grouping,
      boolean locality,
      Map<String, Long> metrics) {}

  public record NarrowScan(Selection selection) implements Repeatable {}

  public record NarrowedScan(List<String> files) {}

  public record ReadRows(
      JsonNode reference,
      List<Integer> fieldIds,
      JsonNode filters,
      boolean caseSensitive,
      Integer limit,
      Map<String, String> options)
      implements Repeatable {}

  public record Rows(List<String> streams) {}

  // Streams

  public record OpenStream(PlanScan scan, String initial) implements Repeatable {}

  public record OpenedStream(
      JsonNode stream,
      String initial,
      Integer maxFiles,
      Long maxRows,
      boolean vectorized,
      Integer batchRows) {}

  public record LatestOffset(
      JsonNode stream, String start, Integer maxFiles, Long maxRows, String until)
      implements Repeatable {}

  public record StreamEnd(JsonNode stream) implements Repeatable {}

  public record StreamPosition(String offset) {}

  public record PlanStream(JsonNode stream, PlanScan scan, String start, String end)
      implements Repeatable {}

  // Writes

  public record PlanChange(
      JsonNode reference,
      String command,
      Map<String, String> options,
      Map<String, String> settings,
      boolean keepsMetadata)
      implements Repeatable {}

  public record PlannedChange(
      boolean mergeOnRead, List<String> metadataColumns, String refusal) {}

  public record StreamingQuery(String id, String uuid) {}

  public record QueriedTable(JsonNode reference, Map<String, String> options) {}

  public record BeginWrite(
      JsonNode reference,
      String operation,
      String command,
      JsonNode filters,
      Map<String, String> options,
      Map<String, String> settings,
      Audit audit,
      StreamingQuery query,
      JsonNode rows,
      boolean caseSensitive,
      List<QueriedTable> queried)
      implements Repeatable {}

  public record PartitionColumn(
      String name, String transform, Integer parameter, List<String> source) {}

  public record DataLocation(String root, boolean hashed, boolean partitionedPaths, String context)
      implements Serializable {}

  public record SortField(JsonNode transform, String direction, String nulls) {}

  public record FileInstructions(
      String format,
      JsonNode schema,
      String fileSchema,
      List<Map<String, String>> attributes,
      long targetBytes,
      Map<String, String> writer,
      Map<String, String> metrics,
      Map<String, String> metadata) {}

  public record DeleteInstructions(FileInstructions files, boolean byFile, boolean asVectors) {}

  public record WriteInstructions(
      JsonNode write,
      FileInstructions files,
      List<PartitionColumn> partition,
      DataLocation location,
      String operationId,
      JsonNode distribution,
      List<SortField> ranges,
      List<SortField> ordering,
      Long advisoryBytes,
      boolean fanout,
      DeleteInstructions deletes,
      boolean lineage,
      boolean asGiven) {}

  /**
   * @param columns the text of a JSON array
   */
  public record WrittenFile(
      String path,
      long size,
      long rows,
      JsonNode partition,
      List<Long> splitOffsets,
      String columns) {}

  public record Replaced(JsonNode reference, JsonNode filters, List<JsonNode> files) {}

  public record WrittenDeletes(
      WrittenFile file, List<String> files, long deleted, boolean replaces, String positions) {}

  /**
   * @param deletes {@link WrittenDeletes}, as JSON text written by their tasks
   */
  public record Delta(
      JsonNode reference, JsonNode filters, List<JsonNode> files, JsonNode deletes) {}

  public record Epoch(long number, Long plannedMs) {}

  public record MergedRows(
      long copied,
      long deleted,
      long updated,
      long inserted,
      long matchedUpdated,
      long matchedDeleted,
      long unmatchedUpdated,
      long unmatchedDeleted) {}

  /**
   * @param files {@link WrittenFile}s, as JSON text written by their tasks
   */
  public record CommitWrite(
      JsonNode write,
      JsonNode files,
      Replaced replaced,
      Delta delta,
      Epoch epoch,
      MergedRows merged)
      implements Unrepeatable {}

  public record Committed(Map<String, Long> metrics) {

    /** Nothing was committed, or not yet. */
    public static final Committed NOTHING = new Committed(Map.of());
  }

  public record AbortWrite(JsonNode write, List<String> files) implements Repeatable {}

  /**
   * @param files as in {@link CommitWrite}
   */
  public record CommitStaged(
      JsonNode reference, JsonNode write, JsonNode files, List<JsonNode> read)
      implements Unrepeatable {}

  public record AbortStaged(JsonNode reference, List<String> files) implements Repeatable {}

  public record CanDeleteWhere(JsonNode reference, JsonNode filters) implements Repeatable {}

  public record Possible(boolean possible) {}

  public record DeleteWhere(
      JsonNode reference, JsonNode filters, Map<String, String> settings, Audit audit)
      implements Unrepeatable {}

  // Procedures

  public record ListProcedures(String catalog, List<String> namespace) implements Repeatable {}

  public record ProcedureNames(List<TableName> procedures) {}

  public record LoadProcedure(String catalog, TableName procedure) implements Repeatable {}

  public record ProcedureParameter(String name, JsonNode type, String fallback) {}

  public record ProcedureDescription(
      String name, String description, List<ProcedureParameter> parameters, JsonNode schema) {}

  public record ProcedureArgument(String name, JsonNode value) {}

  public record CurrentNamespace(String catalog, List<String> namespace) {}

  public record CallProcedure(
      String catalog,
      TableName procedure,
      List<ProcedureArgument> arguments,
      CurrentNamespace current,
      boolean caseSensitive,
      Map<String, String> settings)
      implements Unrepeatable {}

  public record SessionWork(
      String id, String table, Map<String, String> read, Map<String, String> write) {}

  public record SessionQuery(String id, String statement, String file) {}

  public record ListedFolder(String location, String path) {}

  public record SessionListing(
      String id,
      List<ListedFolder> folders,
      boolean deep,
      String hiddenFolders,
      String hiddenFiles,
      String always,
      String known,
      String file) {}

  public record SessionSketches(
      String id, String table, Map<String, String> read, List<String> columns, String file) {}

  public record ProcedurePage(
      List<JsonNode> rows,
      List<SessionWork> work,
      List<SessionQuery> queries,
      List<SessionListing> listings,
      List<SessionSketches> sketches) {}

  public record ProcedureResult(List<String> statements) {}

  public record EndWork(String catalog, String work, String problem) implements Unrepeatable {}

  // Changelogs

  public record ChangelogRange(
      String startVersion,
      String endVersion,
      Long startUs,
      Long endUs,
      boolean startInclusive,
      boolean endInclusive) {}

  public record LoadChangelog(
      String catalog,
      TableName table,
      ChangelogRange range,
      String deduplication,
      boolean computeUpdates,
      Audit audit)
      implements Repeatable {}

  public record LoadedChangelog(TableDescription table, List<String> identifiers) {}

  // Views

  public record ListViews(String catalog, List<String> namespace) implements Repeatable {}

  public record ViewExists(String catalog, TableName view) implements Repeatable {}

  public record LoadView(String catalog, TableName view) implements Repeatable {}

  public record ViewDescription(
      String query,
      JsonNode schema,
      List<String> queryColumns,
      String currentCatalog,
      List<String> currentNamespace,
      Map<String, String> settings,
      String schemaMode,
      Map<String, String> properties) {}

  public record CreateView(String catalog, TableName view, ViewDescription definition)
      implements Unrepeatable {}

  public record ReplaceView(
      String catalog, TableName view, ViewDescription definition, boolean create)
      implements Unrepeatable {}

  public record AlterView(
      String catalog, TableName view, Map<String, String> set, List<String> remove)
      implements Unrepeatable {}

  public record DropView(String catalog, TableName view) implements Unrepeatable {}

  public record RenameView(String catalog, TableName view, TableName target)
      implements Unrepeatable {}
}
