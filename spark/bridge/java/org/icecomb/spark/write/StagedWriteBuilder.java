package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Protocol.CommittedWrite;

/** A write to a table that is still being created, which commits the files together with itself. */
public final class StagedWriteBuilder extends IcecombWriteBuilder implements SupportsTruncate {

  private final Keeping keep;

  /**
   * @param keep keeps the files until the table is committed
   */
  public StagedWriteBuilder(TableHandle table, LogicalWriteInfo info, Keeping keep) {
    super(table, info);
    this.keep = keep;
  }

  /** Keeps the files of a write. */
  @FunctionalInterface
  public interface Keeping {

    /**
     * @param write the planner's state of the write
     * @param files descriptions of the files for the planner
     * @param paths the paths of the files
     */
    void keep(JsonNode write, ArrayNode files, List<String> paths);
  }

  /** Called by REPLACE TABLE … AS SELECT; the new table has no rows to delete. */
  @Override
  public WriteBuilder truncate() {
    return this;
  }

  /** Keeps the files; the commit's metrics are known only when the table is created. */
  @Override
  protected CommittedWrite commit(JsonNode write, FinishedFiles finished) {
    keep.keep(write, finished.files(), finished.paths());
    return new CommittedWrite(Map.of());
  }
}
