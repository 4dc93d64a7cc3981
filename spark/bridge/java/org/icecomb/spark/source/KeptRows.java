package org.icecomb.spark.source;

import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionEnd;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.storage.StorageLevel;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.statement.CommandPlan;
import scala.collection.JavaConverters;
import scala.reflect.ClassTag$;

/**
 * The rows of a query, read on first use and then from the disks of the executors, until the
 * statement ends. They are never read from their source again: two executors store them if there
 * are two, and if both are lost, the statement fails.
 *
 * <p>Two attempts of one task may both have stored their rows, which may differ: all readers must
 * read those of the attempt that Spark accepted.
 */
final class KeptRows extends RDD<InternalRow> {

  private final transient QueryExecution source;
  private final StructType schema;
  private RDD<byte[]> kept;
  private long[] attempts;
  private transient RuntimeException failure;

  KeptRows(SparkContext context, QueryExecution source) {
    super(context, CommandPlan.list(List.of()), ClassTag$.MODULE$.apply(InternalRow.class));
    this.source = source;
    this.schema = source.analyzed().schema();
  }

  /** The query, with the states that it reads; only on the driver. */
  LogicalPlan read() {
    return source.normalized();
  }

  /** The optimized query; only on the driver. */
  LogicalPlan query() {
    return source.optimizedPlan();
  }

  @Override
  public Partition[] getPartitions() {
    keep();
    return kept.partitions();
  }

  @Override
  @SuppressWarnings({"unchecked", "rawtypes"})
  public scala.collection.immutable.List<String> getPreferredLocations(Partition partition) {
    return (scala.collection.immutable.List) kept.preferredLocations(partition).toList();
  }

  /** Reads the rows once: concurrent readers wait for the same result. */
  private synchronized void keep() {
    if (failure != null) {
      throw failure;
    }
    if (kept != null) {
      return;
    }
    try {
      releaseAtEnd();
      StructType columns = schema;
      RDD<byte[]> rows =
          source
              .toRdd()
              .toJavaRDD()
              .mapPartitions(each -> new RowPages(each, columns, TaskContext.get().taskAttemptId()))
              .rdd();
      rows.setName("rows that a statement reads again");
      // the driver is counted, too
      boolean several = context().getExecutorMemoryStatus().size() > 2;
      rows.persist(several ? StorageLevel.DISK_ONLY_2() : StorageLevel.DISK_ONLY());
      rows.localCheckpoint();
      kept = rows;
      List<Long> taken =
          rows.toJavaRDD().mapPartitions(pages -> List.of(attempt(pages)).iterator()).collect();
      attempts = taken.stream().mapToLong(Long::longValue).toArray();
    } catch (RuntimeException e) {
      failure = e;
      throw e;
    }
  }

  private static long attempt(Iterator<byte[]> pages) {
    return ByteBuffer.wrap(pages.next()).getLong();
  }

  @Override
  public scala.collection.Iterator<InternalRow> compute(Partition partition, TaskContext task) {
    Iterator<byte[]> pages = JavaConverters.asJavaIterator(pages(partition, task));
    if (attempt(pages) != attempts[partition.index()]) {
      throw new IllegalStateException(
          "Rows that a statement had stored to read them again are from another attempt of their task\n"
              + "  hint: Nothing was changed: repeat the statement.");
    }
    return JavaConverters.asScalaIterator(new RowPages.Reader(pages, schema.size()));
  }

  private scala.collection.Iterator<byte[]> pages(Partition partition, TaskContext task) {
    try {
      return kept.iterator(partition, task);
    } catch (Exception e) {
      if (String.valueOf(e.getMessage()).contains("Checkpoint block")) {
        throw new IllegalStateException(
            "Rows that a statement had kept to read them again are lost with the executor that had them\n"
                + "  hint: Nothing was changed: repeat the statement; with two executors both keep them.",
            e);
      }
      throw SparkErrors.unchecked(e);
    }
  }

  private void releaseAtEnd() {
    String statement = context().getLocalProperty(SQLExecution.EXECUTION_ID_KEY());
    if (statement != null) {
      context().addSparkListener(new End(this, Long.parseLong(statement)));
    }
    // else released by Spark when nothing refers to it any more
  }

  private synchronized void release() {
    if (kept != null) {
      kept.unpersist(false);
    }
  }

  /** Releases the rows when the statement has ended, successfully or not. */
  private static final class End extends SparkListener {

    private final WeakReference<KeptRows> rows;
    private final SparkContext context;
    private final long statement;

    End(KeptRows rows, long statement) {
      this.rows = new WeakReference<>(rows);
      this.context = rows.context();
      this.statement = statement;
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
      if (event instanceof SparkListenerSQLExecutionEnd end && end.executionId() == statement) {
        context.removeSparkListener(this);
        KeptRows found = rows.get();
        if (found != null) {
          found.release();
        }
      }
    }
  }
}
