package org.icecomb.spark.write;

import org.apache.spark.sql.connector.write.BatchWrite;
import org.icecomb.spark.planner.Protocol.MergedRows;

/** A write whose rows Spark may have counted; this Spark does not count them. */
abstract class CountedWrite implements BatchWrite {

  /** The rows of a MERGE, or null. */
  final MergedRows merged() {
    return null;
  }
}
