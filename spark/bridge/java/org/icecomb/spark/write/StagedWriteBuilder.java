package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.function.BiConsumer;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.icecomb.spark.PlannerSession;

/** A write into a table that is still being made, which commits the files together with itself. */
public final class StagedWriteBuilder extends IcecombWriteBuilder implements SupportsTruncate {

  private final BiConsumer<ObjectNode, List<String>> keep;

  /**
   * @param keep keeps the request to commit the files, and where they are, until the table is
   *     committed
   */
  public StagedWriteBuilder(
      PlannerSession session,
      String tableName,
      JsonNode reference,
      LogicalWriteInfo info,
      BiConsumer<ObjectNode, List<String>> keep) {
    super(session, tableName, reference, info);
    this.keep = keep;
  }

  /** What REPLACE TABLE … AS SELECT asks for; the new table has no rows to be deleted. */
  @Override
  public WriteBuilder truncate() {
    return this;
  }

  @Override
  protected void commit(ObjectNode request, List<String> paths) {
    keep.accept(request, paths);
  }
}
