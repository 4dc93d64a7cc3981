package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.mapreduce.Job;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.util.SerializableConfiguration;
import org.icecomb.spark.NamedMetric;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.AbortWrite;
import org.icecomb.spark.planner.Protocol.CommittedWrite;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/**
 * A write whose tasks write data files, which the planner commits in one commit.
 *
 * <p>Files of a failed write are deleted, unless the commit may have happened after all.
 */
class IcecombWrite extends CountedWrite implements RequiresDistributionAndOrdering {

  private final TableHandle table;
  private final WriteInstructions instructions;
  private final Commit commit;
  private final FittedRows rows;
  private final MovedRows moved;
  private boolean commitUnknown;
  private Map<String, Long> metrics = Map.of();

  /** Commits the files of a write. */
  @FunctionalInterface
  interface Commit {

    /**
     * @param write the planner's state of the write
     */
    CommittedWrite commit(JsonNode write, FinishedFiles finished);
  }

  /**
   * @param given the columns of Spark's rows
   * @param moved the lineage of rows of other files; null if none is written
   * @param commit commits the files; throws the planner's errors
   */
  IcecombWrite(
      TableHandle table,
      StructType given,
      WriteInstructions instructions,
      MovedRows moved,
      Commit commit) {
    this.table = table;
    this.moved = moved;
    this.instructions = instructions;
    this.commit = commit;
    this.rows =
        instructions.asGiven() ? FittedRows.of(table.name(), given, instructions) : null;
  }

  @Override
  public String description() {
    return "icecomb write to " + table.name();
  }

  /** The distribution, which clusters partitions so that each gets few files. */
  @Override
  public Distribution requiredDistribution() {
    if (!instructions.ranges().isEmpty()) {
      return Distributions.ordered(Transforms.ordering(instructions.ranges()));
    }
    JsonNode distribution = instructions.distribution();
    return distribution.isEmpty()
        ? Distributions.unspecified()
        : Distributions.clustered((Expression[]) Transforms.fromJson(distribution));
  }

  /** The size, which Spark accepts only with a distribution. */
  @Override
  public long advisoryPartitionSizeInBytes() {
    boolean shared = !instructions.ranges().isEmpty() || !instructions.distribution().isEmpty();
    return shared && instructions.advisoryBytes() != null ? instructions.advisoryBytes() : 0;
  }

  @Override
  public boolean distributionStrictlyRequired() {
    return false;
  }

  @Override
  public SortOrder[] requiredOrdering() {
    return Transforms.ordering(instructions.ordering());
  }

  @Override
  public BatchWrite toBatch() {
    return this;
  }

  @Override
  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    DataWriterFactory writers = rowWriters();
    return UserWriterFactory.of(table.user(), rows == null ? writers : rows.fitting(writers));
  }

  /** The writers of rows, for tasks that already run as the statement's user. */
  final DataFileWriterFactory rowWriters() {
    SparkSession spark = SparkSession.active();
    WriteSettings settings = WriteSettings.of(instructions);
    return new DataFileWriterFactory(broadcast(spark, settings), settings, moved);
  }

  final Broadcast<SerializableConfiguration> broadcast(SparkSession spark, WriteSettings settings) {
    FileSettings files = settings.files();
    Configuration conf =
        switch (files.format()) {
          case PARQUET -> forParquet(spark, files);
          case ORC -> forOrc(files);
          case AVRO -> table.session().hadoop();
        };
    return JavaSparkContext.fromSparkContext(spark.sparkContext())
        .broadcast(new SerializableConfiguration(conf));
  }

  /** Spark's own preparation, then settings that must not depend on the session. */
  private Configuration forParquet(SparkSession spark, FileSettings files) {
    String calendar =
        spark.sessionState().conf().getConfString("spark.sql.parquet.datetimeRebaseModeInWrite");
    if (calendar.equals("LEGACY")) {
      throw new UnsupportedOperationException(
          "spark.sql.parquet.datetimeRebaseModeInWrite=LEGACY writes old dates that other readers of "
              + "Iceberg tables misread; set it to CORRECTED");
    }
    try {
      Job job = Job.getInstance(table.session().hadoop());
      StructType columns = Schemas.visible(files.schema());
      new ParquetFileFormat()
          .prepareWrite(spark, job, scala.collection.immutable.Map$.MODULE$.empty(), columns);
      Configuration conf = job.getConfiguration();
      // its value goes into every footer
      conf.set(ParquetWriteSupport.SPARK_ROW_SCHEMA(), Schemas.setting(columns));
      conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
      conf.set("spark.sql.parquet.writeLegacyFormat", "false");
      conf.set("spark.sql.parquet.fieldId.write.enabled", "false");
      files.writer().forEach(conf::set);
      return conf;
    } catch (IOException e) {
      throw new IllegalStateException("No Hadoop job can be configured", e);
    }
  }

  private Configuration forOrc(FileSettings files) {
    Configuration conf = new Configuration(table.session().hadoop());
    files.writer().forEach(conf::set);
    return conf;
  }

  @Override
  public void commit(WriterCommitMessage[] messages) {
    commit(messages, commit);
  }

  /** Commits the files of all tasks, and records whether it is known to have failed. */
  final void commit(WriterCommitMessage[] messages, Commit commit) {
    FinishedFiles finished = FinishedFiles.of(messages, merged());
    // Only the planner's own refusal proves that the files are unused.
    commitUnknown = true;
    try {
      metrics = commit.commit(instructions.write(), finished).metrics();
    } catch (PlannerException e) {
      commitUnknown = e.leavesCommitUnknown();
      throw SparkErrors.other(e);
    }
    table.refreshCached();
  }

  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return CommitMetrics.all();
  }

  /** The metrics of the commit; not used by Spark 3.5. */
  public CustomTaskMetric[] reportDriverMetrics() {
    return NamedMetric.values(metrics);
  }

  @Override
  public void abort(WriterCommitMessage[] messages) {
    if (commitUnknown) {
      return;
    }
    List<String> paths = FinishedFiles.of(messages, null).paths();
    table.session().cleanUp(catalog -> new AbortWrite(instructions.write(), paths));
  }
}
