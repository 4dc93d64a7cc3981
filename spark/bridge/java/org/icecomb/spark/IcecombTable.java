package org.icecomb.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
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
import org.icecomb.spark.planner.Protocol.CanDeleteWhere;
import org.icecomb.spark.planner.Protocol.DeleteWhere;
import org.icecomb.spark.planner.Protocol.Done;
import org.icecomb.spark.planner.Protocol.PlanChange;
import org.icecomb.spark.planner.Protocol.PlannedChange;
import org.icecomb.spark.planner.Protocol.Possible;
import org.icecomb.spark.planner.Protocol.QueriedTable;
import org.icecomb.spark.planner.Protocol.TableDescription;
import org.icecomb.spark.read.IcecombScanBuilder;
import org.icecomb.spark.read.MetadataColumns;
import org.icecomb.spark.source.PartitionOverwrites;
import org.icecomb.spark.write.MissingRows;
import org.icecomb.spark.write.RowLevelDelta;
import org.icecomb.spark.write.RowLevelRewrite;
import org.icecomb.spark.write.TableWriteBuilder;

/** A table in one state: everything it answers is based on the metadata it was loaded with. */
public final class IcecombTable
    implements PinnedTable,
        SupportsRead,
        SupportsWrite,
        SupportsMetadataColumns,
        SupportsDeleteV2,
        SupportsRowLevelOperations {

  private final TableDescription description;
  private final TableHandle handle;
  private final boolean withFunctions;
  private final MissingRows read;
  private final MissingRows written;
  private final List<QueriedTable> queried;
  private final String chosen;
  private final List<String> named;
  private final boolean namedInOutput;
  private final boolean carriesLineage;

  IcecombTable(TableHandle handle, TableDescription description) {
    this(handle, description, true, null, null, List.of(), "", List.of(), false, false);
  }

  private IcecombTable(
      TableHandle handle,
      TableDescription description,
      boolean withFunctions,
      MissingRows read,
      MissingRows written,
      List<QueriedTable> queried,
      String chosen,
      List<String> named,
      boolean namedInOutput,
      boolean carriesLineage) {
    this.handle = handle;
    this.description = description;
    this.withFunctions = withFunctions;
    this.read = read;
    this.written = written;
    this.queried = queried;
    this.chosen = chosen;
    this.named = named;
    this.namedInOutput = namedInOutput;
    this.carriesLineage = carriesLineage;
  }

  /** The same table without partition functions, as Spark does not know a catalog that has them. */
  IcecombTable withoutFunctions() {
    return new IcecombTable(
        handle, description, false, null, null, List.of(), chosen, named, namedInOutput,
        carriesLineage);
  }

  /** The same table, read by a statement to find missing rows; it is equal only to itself. */
  public IcecombTable readFor(MissingRows missing) {
    return new IcecombTable(
        handle, description, withFunctions, missing, null, List.of(), chosen, named, namedInOutput,
        carriesLineage);
  }

  /**
   * The same table, to which a statement adds the rows that it found missing.
   *
   * @param states its other reads of the table
   */
  public IcecombTable writtenFor(MissingRows missing, List<QueriedTable> states) {
    return new IcecombTable(
        handle, description, withFunctions, null, missing, states, chosen, named, namedInOutput,
        carriesLineage);
  }

  /**
   * The same table, whose rows a statement replaces by rows that it reads from the table itself.
   */
  public IcecombTable writtenFrom(List<QueriedTable> states) {
    return new IcecombTable(
        handle, description, withFunctions, null, null, states, chosen, named, namedInOutput,
        carriesLineage);
  }

  /**
   * The same table, changed by a statement that names metadata columns.
   *
   * @param columns the columns, which Spark reads beside the table's own
   * @param inOutput whether Spark has them in its output of the table, also where it is written
   */
  public IcecombTable naming(List<String> columns, boolean inOutput) {
    return new IcecombTable(
        handle, description, withFunctions, read, written, queried, chosen, columns, inOutput,
        carriesLineage);
  }

  @Override
  public IcecombTable chosenBy(String how) {
    return new IcecombTable(
        handle, description, withFunctions, read, written, queried, how, named, namedInOutput,
        carriesLineage);
  }

  /** How INSERT OVERWRITE goes on after a migration; null if the session alone decides. */
  public String overwriteMode() {
    return description.overwriteMode();
  }

  /** Whether its rows have ids that are among its metadata columns. */
  public boolean hasLineage() {
    return description.hasLineage() && !carriesLineage;
  }

  /**
   * The same table with the columns of row lineage behind its own, by which a statement passes them
   * on to the files that it writes.
   */
  public IcecombTable carryingLineage() {
    return carrying(true);
  }

  /** Whether the columns of row lineage are behind its own. */
  public boolean carriesLineage() {
    return carriesLineage;
  }

  /** The same table with its own columns only. */
  public IcecombTable withoutLineage() {
    return carrying(false);
  }

  private IcecombTable carrying(boolean lineage) {
    return new IcecombTable(
        handle, description, withFunctions, read, written, queried, chosen, named,
        namedInOutput, lineage);
  }

  /**
   * A reference to its state for the planner of a table that is written.
   *
   * @param target the written table, which has the same identity
   */
  public JsonNode readFor(TableHandle target) {
    if (!handle.session().isBeside(target.session())) {
      throw SparkErrors.unsupported(
          "Rows of table " + target.name() + " cannot be replaced by those of " + this
              + ": its catalog is served by another Python",
          "Name the table by one catalog in the statement, or give both the same option python.");
    }
    return handle.reference();
  }

  /** A reference to its state for the planner. */
  public JsonNode reference() {
    return handle.reference();
  }

  @Override
  public String name() {
    return handle.name();
  }

  /**
   * Used by Spark 4.1 and later, like {@link #version()}. Sessions of one application share cached
   * rows, and any session that writes refreshes them by its own settings.
   */
  public String id() {
    return description.identity() + chosen;
  }

  /** The table's uuid, whichever of its branches this is. */
  public String uuid() {
    return description.uuid();
  }

  public String version() {
    return description.version();
  }

  @Override
  public StructType schema() {
    StructType own = Schemas.visible(handle.schema());
    return carriesLineage ? MetadataColumns.withLineage(own) : own;
  }

  @Override
  public Transform[] partitioning() {
    return Transforms.fromJson(description.partitioning());
  }

  @Override
  public Map<String, String> properties() {
    return description.properties();
  }

  @Override
  public Set<TableCapability> capabilities() {
    Set<TableCapability> found =
        EnumSet.of(
            TableCapability.BATCH_READ,
            TableCapability.MICRO_BATCH_READ,
            TableCapability.BATCH_WRITE,
            TableCapability.STREAMING_WRITE,
            TableCapability.TRUNCATE,
            TableCapability.OVERWRITE_BY_FILTER,
            TableCapability.OVERWRITE_DYNAMIC);
    if (description.takesAnyRows() || namedInOutput) {
      found.add(TableCapability.ACCEPT_ANY_SCHEMA);
    }
    if (description.evolves()) {
      found.addAll(SchemaEvolution.CAPABILITIES);
    }
    return found;
  }

  @Override
  public MetadataColumn[] metadataColumns() {
    JsonNode partition = description.partitionType();
    return MetadataColumns.of(
        partition == null || partition.isNull() ? null : Schemas.parse(partition),
        hasLineage());
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    TableHandle table = handle.ofCurrentUser();
    return new IcecombScanBuilder(table, options) {
      @Override
      public Scan build() {
        if (read != null) {
          read.readBy(conditions());
        }
        return super.build();
      }
    };
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    return new TableWriteBuilder(
        handle.ofCurrentUser(),
        description.uuid(),
        withFunctions,
        written,
        queried,
        PartitionOverwrites.areOpen(this),
        info);
  }

  /** Whether the planner itself can delete these rows; else Spark rewrites their files. */
  @Override
  public boolean canDeleteWhere(Predicate[] predicates) {
    List<Condition> conditions = Condition.all(predicates, handle.schema());
    return conditions != null
        && handle
            .ofCurrentUser()
            .ask(
                new CanDeleteWhere(handle.reference(), Condition.toJson(conditions)),
                Possible.class)
            .possible();
  }

  @Override
  public void deleteWhere(Predicate[] predicates) {
    ArrayNode filters = Condition.toJson(Condition.all(predicates, handle.schema()));
    DeleteWhere request =
        new DeleteWhere(handle.reference(), filters, IcebergSettings.now(), IcebergSettings.audit());
    handle.ofCurrentUser().ask(request, Done.class);
    handle.refreshCached();
  }

  @Override
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    return () -> {
      String command = info.command().name().toLowerCase(Locale.ROOT);
      PlannedChange change = plan(command, info.options());
      List<String> columns =
          Stream.concat(change.metadataColumns().stream(), named.stream()).distinct().toList();
      return change.mergeOnRead()
          ? new RowLevelDelta(handle, info.command(), columns)
          : new RowLevelRewrite(handle, info.command(), columns, change.refusal());
    };
  }

  /** Whether a DELETE with these options rewrites files, rather than writing delete files. */
  public boolean deletesByRewriting(CaseInsensitiveStringMap options) {
    return !plan("delete", options).mergeOnRead();
  }

  private PlannedChange plan(String command, CaseInsensitiveStringMap options) {
    PlanChange request =
        new PlanChange(
            handle.reference(),
            command,
            options.asCaseSensitiveMap(),
            IcebergSettings.ofWrites(),
            SparkVersion.keepsMetadata() || carriesLineage);
    return handle.ofCurrentUser().ask(request, PlannedChange.class);
  }

  /**
   * Refuses a DELETE of all rows whose options select other rows than the table's: Spark truncates
   * the table without passing the options.
   */
  public void checkEmptied(CaseInsensitiveStringMap options) {
    if (!options.isEmpty()) {
      plan("delete", options);
    }
  }

  @Override
  public TableHandle handle() {
    return handle;
  }

  /** The same table in the same state, so that rows cached by a session are still valid. */
  @Override
  public boolean equals(Object other) {
    return other instanceof IcecombTable table
        && read == table.read
        && chosen.equals(table.chosen)
        && named.equals(table.named)
        && carriesLineage == table.carriesLineage
        && handle.isStateOf(table.handle)
        // A table re-created in the same folder reuses names of metadata files.
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
