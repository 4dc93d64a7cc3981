package org.icecomb.spark.write;

import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.MergeSummary;
import org.apache.spark.sql.connector.write.WriteSummary;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.icecomb.spark.planner.Protocol.MergedRows;

/** A write whose rows Spark may have counted. */
abstract class CountedWrite implements BatchWrite {

  private MergedRows merged;

  /** The rows of a MERGE, or null. */
  final MergedRows merged() {
    return merged;
  }

  @Override
  public void commit(WriterCommitMessage[] messages, WriteSummary summary) {
    if (summary instanceof MergeSummary rows) {
      merged =
          new MergedRows(
              rows.numTargetRowsCopied(),
              rows.numTargetRowsDeleted(),
              rows.numTargetRowsUpdated(),
              rows.numTargetRowsInserted(),
              rows.numTargetRowsMatchedUpdated(),
              rows.numTargetRowsMatchedDeleted(),
              rows.numTargetRowsNotMatchedBySourceUpdated(),
              rows.numTargetRowsNotMatchedBySourceDeleted());
    }
    commit(messages);
  }
}
