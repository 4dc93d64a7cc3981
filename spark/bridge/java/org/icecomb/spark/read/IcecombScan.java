package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.OptionalLong;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.SupportsReportStatistics;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.util.SerializableConfiguration;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.PlannerException;

/** A read of chosen columns and filters; the planner is asked once for its files, when needed. */
class IcecombScan implements Batch, SupportsReportStatistics {

  private static final String SPLIT_BYTES = "spark.sql.files.maxPartitionBytes";

  private final PlannerSession session;
  private final String tableName;
  private final JsonNode reference;
  private final StructType required;
  private final StructType dataColumns;
  private final List<Condition> conditions;
  private final CaseInsensitiveStringMap options;
  private JsonNode plan;

  IcecombScan(
      PlannerSession session,
      String tableName,
      JsonNode reference,
      StructType schemaWithIds,
      StructType required,
      List<Condition> conditions,
      CaseInsensitiveStringMap options) {
    this.session = session;
    this.tableName = tableName;
    this.reference = reference;
    this.required = required;
    this.conditions = List.copyOf(conditions);
    this.options = options;
    List<StructField> stored = new ArrayList<>();
    for (StructField field : required.fields()) {
      if (schemaWithIds.getFieldIndex(field.name()).isDefined()) {
        stored.add(field);
      }
    }
    this.dataColumns = Schemas.withIds(Schemas.struct(stored), schemaWithIds);
  }

  @Override
  public StructType readSchema() {
    return required;
  }

  @Override
  public String description() {
    return "icecomb " + tableName + " [filters: " + conditionsJson() + "]";
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    JsonNode deletes = plan().path("deletes");
    List<InputPartition> partitions = new ArrayList<>();
    for (JsonNode group : plan().get("partitions")) {
      List<FileTask> files = new ArrayList<>();
      for (JsonNode task : group) {
        if (isRead(task.get("path").asText())) {
          files.add(FileTask.parse(task, deletes, dataColumns));
        }
      }
      if (!files.isEmpty()) {
        partitions.add(new FileTask.Group(files));
      }
    }
    return partitions.toArray(new InputPartition[0]);
  }

  /** Whether a data file of the plan is read. */
  boolean isRead(String path) {
    return true;
  }

  /** The data files of the plan that are read. */
  final Set<String> files() {
    Set<String> paths = new LinkedHashSet<>();
    for (JsonNode group : plan().get("partitions")) {
      for (JsonNode task : group) {
        String path = task.get("path").asText();
        if (isRead(path)) {
          paths.add(path);
        }
      }
    }
    return paths;
  }

  /** What leaves out rows of the files that are read. */
  List<Condition> conditionsOnRows() {
    return conditions;
  }

  @Override
  public PartitionReaderFactory createReaderFactory() {
    SparkSession spark = SparkSession.active();
    SQLConf conf = spark.sessionState().conf();
    Configuration hadoop = spark.sessionState().newHadoopConf();
    ReadSettings.configure(hadoop, conf);
    Broadcast<SerializableConfiguration> broadcast =
        JavaSparkContext.fromSparkContext(spark.sparkContext())
            .broadcast(new SerializableConfiguration(hadoop));
    JsonNode mapping = plan().get("name_mapping");
    return new ColumnarReaderFactory(
        broadcast,
        ReadSettings.of(conf),
        required,
        dataColumns,
        conditionsOnRows(),
        mapping == null || mapping.isNull() ? null : Json.text(mapping));
  }

  @Override
  public Statistics estimateStatistics() {
    JsonNode statistics = plan().path("statistics");
    return new Estimate(known(statistics.get("bytes")), known(statistics.get("rows")));
  }

  private static OptionalLong known(JsonNode number) {
    return number == null || number.isNull() ? OptionalLong.empty() : OptionalLong.of(number.asLong());
  }

  private record Estimate(OptionalLong sizeInBytes, OptionalLong numRows) implements Statistics {}

  private synchronized JsonNode plan() {
    if (plan == null) {
      try {
        plan = session.ask("plan_scan", request());
      } catch (PlannerException e) {
        throw SparkErrors.other(e);
      }
    }
    return plan;
  }

  private ObjectNode request() {
    SparkSession spark = SparkSession.active();
    SQLConf conf = spark.sessionState().conf();
    ObjectNode request = Json.object();
    request.set("reference", reference);
    request.set("schema", Schemas.toJson(dataColumns));
    request.set("filters", conditionsJson());
    request.put("case_sensitive", conf.caseSensitiveAnalysis());
    request
        .putObject("hints")
        .put("parallelism", spark.sparkContext().defaultParallelism())
        .put("split_bytes", conf.filesMaxPartitionBytes())
        .put("open_cost_bytes", conf.filesOpenCostInBytes())
        .put("max_split_bytes_set", conf.contains(SPLIT_BYTES));
    request.set("options", Json.object(options.asCaseSensitiveMap()));
    return request;
  }

  final ArrayNode conditionsJson() {
    return Condition.toJson(conditions);
  }

  /** Equal scans read the same rows, so that Spark can read them once for a query. */
  @Override
  public boolean equals(Object other) {
    return other instanceof IcecombScan scan
        && tableName.equals(scan.tableName)
        && reference.equals(scan.reference)
        && required.equals(scan.required)
        && options.equals(scan.options)
        && conditionsJson().equals(scan.conditionsJson());
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(new Object[] {tableName, reference, required});
  }
}
