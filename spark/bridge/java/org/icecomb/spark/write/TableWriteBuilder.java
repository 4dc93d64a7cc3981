package org.icecomb.spark.write;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.BeginWrite;

/** INSERT INTO appends; INSERT OVERWRITE replaces rows, or whole partitions, in the same commit. */
public final class TableWriteBuilder extends IcecombWriteBuilder
    implements SupportsOverwriteV2, SupportsDynamicOverwrite {

  private final StructType schema;
  private List<Condition> overwritten;
  private boolean dynamic;

  public TableWriteBuilder(TableHandle table, LogicalWriteInfo info) {
    super(table, info);
    this.schema = table.schema();
  }

  @Override
  public boolean canOverwrite(Predicate[] predicates) {
    return Condition.all(predicates, schema) != null;
  }

  @Override
  public WriteBuilder overwrite(Predicate[] predicates) {
    overwritten = Condition.all(predicates, schema);
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
  protected BeginWrite begin(Map<String, String> options) {
    if (dynamic) {
      return begin("overwrite_partitions", null, Json.array(), options);
    }
    return overwritten == null
        ? super.begin(options)
        : begin("overwrite", null, Condition.toJson(overwritten), options);
  }
}
