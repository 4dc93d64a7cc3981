package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.List;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Protocol.Committed;

/** A write into a table that is still being made, which commits the files together with itself. */
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
     * @param write names the write to the planner
     * @param files what the planner is to be told of the files
     * @param paths where they are
     */
    void keep(JsonNode write, ArrayNode files, List<String> paths);
  }

  /** What REPLACE TABLE … AS SELECT asks for; the new table has no rows to be deleted. */
  @Override
  public WriteBuilder truncate() {
    return this;
  }

  /** What the commit changes is known only when the table is made. */
  @Override
  protected Committed commit(JsonNode write, FinishedFiles finished) {
    keep.keep(write, finished.files(), finished.paths());
    return Committed.NOTHING;
  }
}
