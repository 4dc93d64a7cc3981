package org.icecomb.spark.write;

import java.util.function.Supplier;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;

/**
 * A write of rows that may turn out to be a batch of a streaming query.
 *
 * <p>Spark decides this before it requests the distribution. The planner is not called earlier: a
 * query may run for longer than the table's state at its begin can be found.
 */
final class TableWrite implements RequiresDistributionAndOrdering {

  private final Supplier<IcecombWrite> statement;
  private final Supplier<EpochWrite> epoch;
  private IcecombWrite chosen;

  /**
   * @param statement begins the write of a statement
   * @param epoch begins that of a streaming query's batch
   */
  TableWrite(Supplier<IcecombWrite> statement, Supplier<EpochWrite> epoch) {
    this.statement = statement;
    this.epoch = epoch;
  }

  @Override
  public BatchWrite toBatch() {
    return chosen();
  }

  @Override
  public StreamingWrite toStreaming() {
    EpochWrite write = epoch.get();
    chosen = write;
    return write;
  }

  private IcecombWrite chosen() {
    if (chosen == null) {
      chosen = statement.get();
    }
    return chosen;
  }

  /** The metrics of any write, without a request to the planner. */
  @Override
  public CustomMetric[] supportedCustomMetrics() {
    return CommitMetrics.all();
  }

  /** See {@link IcecombWrite#reportDriverMetrics}. */
  public CustomTaskMetric[] reportDriverMetrics() {
    return chosen == null ? new CustomTaskMetric[0] : chosen.reportDriverMetrics();
  }

  @Override
  public String description() {
    return chosen().description();
  }

  @Override
  public Distribution requiredDistribution() {
    return chosen().requiredDistribution();
  }

  @Override
  public boolean distributionStrictlyRequired() {
    return chosen().distributionStrictlyRequired();
  }

  @Override
  public long advisoryPartitionSizeInBytes() {
    return chosen().advisoryPartitionSizeInBytes();
  }

  @Override
  public SortOrder[] requiredOrdering() {
    return chosen().requiredOrdering();
  }
}
