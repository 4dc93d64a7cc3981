package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.BeginWrite;
import org.icecomb.spark.planner.Protocol.CommitWrite;
import org.icecomb.spark.planner.Protocol.CommittedWrite;
import org.icecomb.spark.planner.Protocol.QueriedTable;
import org.icecomb.spark.planner.Protocol.StreamingQuery;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/** INSERT INTO appends; INSERT OVERWRITE replaces rows, or whole partitions, in the same commit. */
public final class TableWriteBuilder extends IcecombWriteBuilder
    implements SupportsOverwriteV2, SupportsDynamicOverwrite {

  private final TableHandle table;
  private final String uuid;
  private final boolean withFunctions;
  private final MissingRows missing;
  private final List<QueriedTable> queried;
  private final boolean open;
  private final LogicalWriteInfo info;
  private List<Condition> overwritten;
  private boolean dynamic;

  /**
   * @param uuid the table's uuid
   * @param withFunctions whether Spark can evaluate partition functions
   * @param missing the read of an insert-only MERGE, else null
   * @param queried the query's reads of this table
   * @param open whether it cannot be told if a full overwrite means all rows, see {@code
   *     PartitionOverwrites}
   */
  public TableWriteBuilder(
      TableHandle table,
      String uuid,
      boolean withFunctions,
      MissingRows missing,
      List<QueriedTable> queried,
      boolean open,
      LogicalWriteInfo info) {
    super(table, info);
    this.table = table;
    this.uuid = uuid;
    this.withFunctions = withFunctions;
    this.missing = missing;
    this.queried = queried;
    this.open = open;
    this.info = info;
  }

  @Override
  public Write build() {
    return new TableWrite(() -> (IcecombWrite) super.build(), this::epoch);
  }

  private EpochWrite epoch() {
    BeginWrite asked = begin(info.options().asCaseSensitiveMap());
    BeginWrite request =
        new BeginWrite(
            asked.reference(),
            asked.operation(),
            asked.command(),
            asked.filters(),
            asked.options(),
            asked.settings(),
            asked.audit(),
            new StreamingQuery(info.queryId(), uuid),
            asked.rows(),
            asked.caseSensitive(),
            asked.queried());
    WriteInstructions instructions = table.ask(request, WriteInstructions.class);
    return new EpochWrite(table, instructions, withFunctions, info);
  }

  @Override
  public boolean canOverwrite(Predicate[] predicates) {
    return Condition.all(predicates, table.schema()) != null;
  }

  @Override
  public WriteBuilder overwrite(Predicate[] predicates) {
    if (open && !info.options().containsKey("overwrite-mode")) {
      throw SparkErrors.unsupported(
          "Whether all rows of table " + table.name() + ", or those of the partitions that get rows, "
              + "are to be overwritten cannot be told: the table was a Hive table, and the session "
              + "lacks icecomb's extension",
          "Set spark.sql.extensions=org.icecomb.spark.IcecombSessionExtensions, or SET "
              + "spark.sql.sources.partitionOverwriteMode in the session.");
    }
    overwritten = Condition.all(predicates, table.schema());
    if (overwritten == null) {
      throw new UnsupportedOperationException(
          "Rows to overwrite must be chosen by comparing columns with values");
    }
    return this;
  }

  @Override
  public WriteBuilder overwriteDynamicPartitions() {
    dynamic = true;
    return this;
  }

  @Override
  protected List<QueriedTable> queried() {
    return queried;
  }

  @Override
  protected BeginWrite begin(Map<String, String> options) {
    if (dynamic) {
      return begin("overwrite_partitions", null, Json.array(), options);
    }
    return overwritten == null
        ? begin("append", missing == null ? null : "merge", Json.array(), options)
        : begin("overwrite", null, Condition.toJson(overwritten), options);
  }

  @Override
  protected CommittedWrite commit(JsonNode write, FinishedFiles finished) {
    return missing == null
        ? super.commit(write, finished)
        : commit(
            new CommitWrite(
                write, finished.files(), null, missing.delta(), null, finished.merged()));
  }
}
