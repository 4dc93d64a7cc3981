package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportPartitioning;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.connector.read.SupportsRuntimeV2Filtering;
import org.apache.spark.sql.connector.read.partitioning.Partitioning;
import org.apache.spark.sql.connector.read.partitioning.UnknownPartitioning;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.util.SerializableConfiguration;
import org.icecomb.spark.NamedMetric;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.convert.Variants;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.NarrowScan;
import org.icecomb.spark.planner.Protocol.NarrowedScan;
import org.icecomb.spark.planner.Protocol.PlanScan;
import org.icecomb.spark.planner.Protocol.ScanPage;
import org.icecomb.spark.planner.Protocol.ScanPlan;
import org.icecomb.spark.planner.Protocol.SplitHints;

/**
 * A scan with selected columns and filters; its files are planned once, when needed.
 *
 * <p>Before the files are read, Spark may add runtime filters, for a join or for a statement that
 * changes rows: these only leave out files of the plan.
 */
class IcecombScan
    implements Batch,
        SupportsReportStatistics,
        SupportsReportPartitioning,
        SupportsRuntimeV2Filtering {

  private static final String SPLIT_BYTES = "spark.sql.files.maxPartitionBytes";
  private static final String OPEN_COST_BYTES = "spark.sql.files.openCostInBytes";

  private final TableHandle table;
  private final StructType required;
  private final StructType dataColumns;
  private final List<Condition> conditions;
  private final Set<String> files;
  private final CaseInsensitiveStringMap options;
  private final Integer limit;
  private final FirstRows first;
  private ScanPlan plan;
  private PlannedTasks tasks;
  private Set<String> needed;
  private List<Condition> narrowed = List.of();
  private AppendStream stream;
  private final BlockLocations locations = new BlockLocations();

  /**
   * @param files the data files to read, or null for all
   * @param limit a number of rows that is enough, or null for all
   * @param first the rows that are enough, or null for all
   */
  IcecombScan(
      TableHandle table,
      StructType required,
      List<Condition> conditions,
      Set<String> files,
      CaseInsensitiveStringMap options,
      Integer limit,
      FirstRows first) {
    this.table = table;
    this.required = required;
    this.conditions = List.copyOf(conditions);
    this.files = files;
    this.options = options;
    this.limit = limit;
    this.first = first;
    List<StructField> stored = new ArrayList<>();
    for (StructField field : required.fields()) {
      if (MetadataColumns.isStored(field.name(), table.schema())) {
        stored.add(field);
      }
    }
    this.dataColumns = Schemas.withIds(Schemas.struct(stored), table.schema());
    Variants.check(dataColumns, true);
  }

  @Override
  public StructType readSchema() {
    return required;
  }

  @Override
  public String description() {
    String chosen = files == null ? "" : ", files: " + files.size();
    String rows = limit == null ? "" : ", limit: " + limit;
    String top = first == null ? "" : ", first rows: " + first;
    return "IcecombScan(table=" + table.name()
        + ", filters=" + Condition.description(conditions)
        + ", runtimeFilters=" + Condition.description(narrowed)
        + chosen + rows + top + ")";
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    boolean vectorized = stream == null ? plan().vectorized() : stream.vectorized();
    return vectorized ? ColumnarSupportMode.SUPPORTED : ColumnarSupportMode.UNSUPPORTED;
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  /** A stream of rows that are appended to the table, instead of its current rows. */
  @Override
  public MicroBatchStream toMicroBatchStream(String checkpoint) {
    stream = new AppendStream(this, table, checkpoint);
    return stream;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    return partitions(plan(), tasks(), this::isRead, locations);
  }

  /**
   * The tasks of a plan.
   *
   * @param chosen selects files by path
   * @param locations the known hosts of files
   */
  final InputPartition[] partitions(
      ScanPlan plan,
      PlannedTasks tasks,
      java.util.function.Predicate<String> chosen,
      BlockLocations locations) {
    if (plan.locality()) {
      locations.learn(tasks.parts(chosen), table.session().hadoop());
    }
    return tasks
        .groups(chosen, new Grouping(plan.grouping()), locations)
        .toArray(new InputPartition[0]);
  }

  /** The grouping of its tasks, which does not change when the scan is narrowed. */
  @Override
  public Partitioning outputPartitioning() {
    if (stream != null) {
      return new UnknownPartitioning(0);
    }
    return new Grouping(plan().grouping()).partitioning(tasks().size());
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return ScanMetrics.all();
  }

  @Override
  public synchronized CustomTaskMetric[] reportDriverMetrics() {
    return plan == null ? new CustomTaskMetric[0] : NamedMetric.values(plan.metrics());
  }

  /** Whether a data file of the plan is read. */
  final boolean isRead(String path) {
    return needed == null || needed.contains(path);
  }

  /** The columns by which the files of the plan are partitioned. */
  @Override
  public NamedReference[] filterAttributes() {
    if (limit != null || first != null || stream != null) {
      // all files that were planned for a limit are needed
      return new NamedReference[0];
    }
    return plan().partitionColumns().stream().map(Transforms::column).toArray(NamedReference[]::new);
  }

  /** Leaves out files without matching rows; replaces earlier filters. */
  @Override
  public void filter(Predicate[] predicates) {
    needed = files(predicates);
  }

  /** The files that may have matching rows, or null for all. */
  Set<String> files(Predicate[] predicates) {
    List<Condition> known =
        Arrays.stream(predicates)
            .map(each -> Condition.of(named(each, table.schema()), table.schema()))
            .filter(Objects::nonNull)
            .toList();
    if (known.isEmpty()) {
      return null;
    }
    narrowed = known;
    NarrowScan request =
        new NarrowScan(
            table.selection(conditionsJson().addAll(Condition.toJson(known)), options));
    return new HashSet<>(table.ask(request, NarrowedScan.class).files());
  }

  /**
   * Replaces names by the table's: runtime filters have the query's spelling if not case-sensitive.
   */
  private static Predicate named(Predicate predicate, StructType schema) {
    Expression[] children = predicate.children();
    if (!predicate.name().equals("IN")
        || !(children[0] instanceof NamedReference reference)
        || reference.fieldNames().length != 1
        || SparkSession.active().sessionState().conf().caseSensitiveAnalysis()) {
      return predicate;
    }
    List<String> meant =
        Arrays.stream(schema.fieldNames())
            .filter(name -> name.equalsIgnoreCase(reference.fieldNames()[0]))
            .toList();
    if (meant.size() != 1) {
      return predicate;
    }
    children = children.clone();
    children[0] = Transforms.column(meant.get(0));
    return new Predicate("IN", children);
  }

  /** What the statement that reads it changes: {@code files}, {@code rows}, or null for nothing. */
  String changes() {
    return null;
  }

  /** The tasks of the plan, including files that are not read. */
  final PlannedTasks tasks() {
    plan();
    return tasks;
  }

  /** The conditions by which readers may leave out rows. */
  List<Condition> conditionsOnRows() {
    return conditions;
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return readers(plan().vectorized(), plan().batchRows(), plan().nameMapping());
  }

  final PartitionReaderFactory readers(boolean vectorized, Integer batchRows, JsonNode mapping) {
    return UserReaderFactory.of(table.user(), ownReaders(vectorized, batchRows, mapping));
  }

  /** The readers for tasks that already run as the statement's user. */
  final ColumnarReaderFactory ownReaders(boolean vectorized, Integer batchRows, JsonNode mapping) {
    SparkSession spark = SparkSession.active();
    SQLConf conf = spark.sessionState().conf();
    Configuration hadoop = table.session().hadoop();
    ReadSettings.configure(hadoop, conf);
    Broadcast<SerializableConfiguration> broadcast =
        JavaSparkContext.fromSparkContext(spark.sparkContext())
            .broadcast(new SerializableConfiguration(hadoop));
    return new ColumnarReaderFactory(
        broadcast,
        ReadSettings.of(conf, hadoop, batchRows),
        vectorized,
        required,
        dataColumns,
        lineage(),
        conditionsOnRows(),
        mapping == null || mapping.isNull() ? null : Json.text(mapping));
  }

  @Override
  public Statistics estimateStatistics() {
    return stream == null
        ? ScanEstimate.of(plan().statistics(), dataColumns)
        : ScanEstimate.UNKNOWN;
  }

  final synchronized ScanPlan plan() {
    if (plan == null) {
      plan = table.ask(request(), ScanPage.class, this::begun, ScanPlan.class);
      tasks.complete();
    }
    return plan;
  }

  /** Starts from scratch, because a request to a lost planner is repeated with all pages. */
  private PlannedTasks begun() {
    tasks = newTasks();
    return tasks;
  }

  final PlannedTasks newTasks() {
    return new PlannedTasks(dataColumns, partition(), lineage());
  }

  final PlanScan request() {
    SparkSession spark = SparkSession.active();
    SQLConf conf = spark.sessionState().conf();
    return new PlanScan(
        table.selection(conditionsJson(), options),
        files == null ? null : List.copyOf(files),
        fieldIds(),
        new SplitHints(
            spark.sparkContext().defaultParallelism(),
            conf.contains(SPLIT_BYTES) ? conf.filesMaxPartitionBytes() : null,
            conf.contains(OPEN_COST_BYTES) ? conf.filesOpenCostInBytes() : null),
        changes(),
        limit,
        first == null ? null : first.rows(),
        conf.cboEnabled() || conf.planStatsEnabled());
  }

  private List<Integer> fieldIds() {
    List<Integer> ids = new ArrayList<>();
    Arrays.stream(dataColumns.fields()).map(Schemas::id).forEach(ids::add);
    if (partition() != null) {
      ids.add(MetadataColumns.PARTITION_ID);
    }
    Arrays.stream(lineage().fields()).map(Schemas::id).forEach(ids::add);
    return ids;
  }

  /** The requested fields of the metadata column {@code _partition}, or null. */
  private StructType partition() {
    return readsMetadata(MetadataColumns.PARTITION)
        ? (StructType) required.apply(MetadataColumns.PARTITION).dataType()
        : null;
  }

  /** The requested columns of row lineage, with ids. */
  private StructType lineage() {
    List<StructField> found = new ArrayList<>();
    if (readsMetadata(MetadataColumns.ROW_ID)) {
      found.add(Schemas.withId(MetadataColumns.ROW_ID, DataTypes.LongType, MetadataColumns.ROW_ID_ID));
    }
    if (readsMetadata(MetadataColumns.LAST_UPDATED)) {
      found.add(
          Schemas.withId(
              MetadataColumns.LAST_UPDATED, DataTypes.LongType, MetadataColumns.LAST_UPDATED_ID));
    }
    return Schemas.struct(found);
  }

  /** Whether a metadata column is requested; a column of the table may have its name. */
  final boolean readsMetadata(String name) {
    return required.getFieldIndex(name).isDefined()
        && dataColumns.getFieldIndex(name).isEmpty();
  }

  final ArrayNode conditionsJson() {
    return Condition.toJson(conditions);
  }

  /** Whether the scans read the same rows, so that Spark can read them once for a query. */
  @Override
  public boolean equals(Object other) {
    return other instanceof IcecombScan scan
        && table.name().equals(scan.table.name())
        && table.reference().equals(scan.table.reference())
        && required.equals(scan.required)
        && options.equals(scan.options)
        && Objects.equals(limit, scan.limit)
        && Objects.equals(files, scan.files)
        && Objects.equals(first, scan.first)
        && conditionsJson().equals(scan.conditionsJson())
        && Objects.equals(needed, scan.needed);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(new Object[] {table.name(), table.reference(), required});
  }
}
