package org.icecomb.spark.write;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.write.DataWriter;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.connector.write.streaming.StreamingDataWriterFactory;
import org.apache.spark.sql.connector.write.streaming.StreamingWrite;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.CommitWrite;
import org.icecomb.spark.planner.Protocol.CommittedWrite;
import org.icecomb.spark.planner.Protocol.Epoch;
import org.icecomb.spark.planner.Protocol.WriteInstructions;

/** One batch of a streaming query, which the planner commits once, however often it is run. */
final class EpochWrite extends IcecombWrite implements StreamingWrite {

  private final TableHandle table;
  private final Checkpoint checkpoint;

  /**
   * @param withFunctions whether Spark can evaluate partition functions; else rows are not
   *     distributed, and tasks keep the files of their partitions open
   * @param info Spark's description of the write
   */
  EpochWrite(
      TableHandle table,
      WriteInstructions asked,
      boolean withFunctions,
      LogicalWriteInfo info) {
    this(table, withFunctions ? asked : unarranged(asked), info);
  }

  private EpochWrite(TableHandle table, WriteInstructions instructions, LogicalWriteInfo info) {
    super(
        table,
        info.schema(),
        instructions,
        null,
        (write, finished) -> new CommittedWrite(Map.of()));
    this.table = table;
    this.checkpoint = Checkpoint.of(info.options());
  }

  private static WriteInstructions unarranged(WriteInstructions asked) {
    boolean plain =
        asked.partition().stream().allMatch(field -> field.transform().equals("identity"));
    return plain
        ? asked
        : new WriteInstructions(
            asked.write(),
            asked.files(),
            asked.partition(),
            asked.location(),
            asked.operationId(),
            Json.array(),
            List.of(),
            List.of(),
            null,
            true,
            asked.deletes(),
            asked.lineage(),
            asked.asGiven());
  }

  @Override
  public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
    return new WriterFactory(createBatchWriterFactory(info));
  }

  @Override
  public boolean useCommitCoordinator() {
    return true;
  }

  @Override
  public void commit(long epochId, WriterCommitMessage[] messages) {
    commit(
        messages,
        (write, finished) -> {
          Epoch epoch = new Epoch(epochId, checkpoint.plannedMs(epochId));
          CommitWrite request = new CommitWrite(write, finished.files(), null, null, epoch, null);
          return table.session().ask(catalog -> request, CommittedWrite.class);
        });
  }

  @Override
  public void abort(long epochId, WriterCommitMessage[] messages) {
    abort(messages);
  }

  /** The writers of a statement's tasks. */
  private record WriterFactory(DataWriterFactory writers)
      implements StreamingDataWriterFactory {

    @Override
    public DataWriter<InternalRow> createWriter(int partitionId, long taskId, long epochId) {
      return writers.createWriter(partitionId, taskId);
    }
  }
}
