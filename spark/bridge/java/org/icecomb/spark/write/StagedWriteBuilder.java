package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.Consumer;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.icecomb.spark.PlannerSession;

/** A write into a table that is still being made, which commits the files together with itself. */
public final class StagedWriteBuilder extends IcecombWriteBuilder implements SupportsTruncate {

  private final Consumer<ObjectNode> keep;

  /**
   * @param keep keeps the request to commit the files until the table is committed
   */
  public StagedWriteBuilder(
      PlannerSession session,
      String tableName,
      JsonNode reference,
      LogicalWriteInfo info,
      Consumer<ObjectNode> keep) {
    super(session, tableName, reference, info);
    this.keep = keep;
  }

  /** What REPLACE TABLE … AS SELECT asks for; the new table has no rows to be deleted. */
  @Override
  public WriteBuilder truncate() {
    return this;
  }

  @Override
  protected void commit(ObjectNode request) {
    keep.accept(request);
  }
}
