package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.convert.Condition;

/** INSERT INTO appends; INSERT OVERWRITE replaces rows, or whole partitions, in the same commit. */
public final class TableWriteBuilder extends IcecombWriteBuilder
    implements SupportsOverwriteV2, SupportsDynamicOverwrite {

  private final StructType schemaWithIds;
  private List<Condition> overwritten;
  private boolean dynamic;

  public TableWriteBuilder(
      PlannerSession session,
      String tableName,
      JsonNode reference,
      StructType schemaWithIds,
      LogicalWriteInfo info) {
    super(session, tableName, reference, info);
    this.schemaWithIds = schemaWithIds;
  }

  @Override
  public boolean canOverwrite(Predicate[] predicates) {
    return Condition.all(predicates, schemaWithIds) != null;
  }

  @Override
  public WriteBuilder overwrite(Predicate[] predicates) {
    overwritten = Condition.all(predicates, schemaWithIds);
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
  protected void describe(ObjectNode request) {
    if (dynamic) {
      request.put("operation", "overwrite_partitions");
    } else if (overwritten != null) {
      request.put("operation", "overwrite");
      request.set("filters", Condition.toJson(overwritten));
    } else {
      super.describe(request);
    }
  }
}
