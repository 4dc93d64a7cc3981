package org.icecomb.spark.rows;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.Base64;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.Batch;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.ReadRows;
import org.icecomb.spark.planner.Protocol.Rows;

/** A scan of rows computed by the planner; each task only passes on one stream of them. */
final class RowsScan implements Scan, Batch {

  private final TableHandle table;
  private final StructType required;
  private final ArrayNode conditions;
  private final String described;
  private final Integer limit;
  private final CaseInsensitiveStringMap options;

  RowsScan(
      TableHandle table,
      StructType required,
      List<Condition> conditions,
      Integer limit,
      CaseInsensitiveStringMap options) {
    this.table = table;
    this.required = required;
    this.conditions = Condition.toJson(conditions);
    this.described = Condition.description(conditions);
    this.limit = limit;
    this.options = options;
  }

  @Override
  public StructType readSchema() {
    return Schemas.visible(required);
  }

  @Override
  public String description() {
    String rows = limit == null ? "" : ", limit: " + limit;
    return "IcecombScan(table=" + table.name() + ", filters=" + described + rows + ")";
  }

  @Override
  public ColumnarSupportMode columnarSupportMode() {
    return ColumnarSupportMode.SUPPORTED;
  }

  @Override
  public Batch toBatch() {
    return this;
  }

  @Override
  public InputPartition[] planInputPartitions() {
    ReadRows request =
        new ReadRows(
            table.reference(),
            Schemas.leafIds(required),
            conditions,
            TableHandle.isCaseSensitive(),
            limit,
            options.asCaseSensitiveMap());
    return table.ask(request, Rows.class).streams().stream()
        .map(stream -> new Part(Base64.getDecoder().decode(stream)))
        .toArray(InputPartition[]::new);
  }

  /**
   * @param stream as in {@link Rows}, without base64
   */
  private record Part(byte[] stream) implements InputPartition {}

  @Override
  public PartitionReaderFactory createReaderFactory() {
    return new Factory(required.size());
  }

  /**
   * @param columns the number of columns that the query reads
   */
  private record Factory(int columns) implements PartitionReaderFactory {

    @Override
    public boolean supportColumnarReads(InputPartition partition) {
      return true;
    }

    @Override
    public PartitionReader<InternalRow> createReader(InputPartition partition) {
      throw new UnsupportedOperationException("icecomb reads columnar batches only");
    }

    @Override
    public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
      return new ArrowStream(((Part) partition).stream(), columns);
    }
  }

  /** Whether the scans read the same rows, so that Spark can read them once for a query. */
  @Override
  public boolean equals(Object other) {
    return other instanceof RowsScan scan
        && table.name().equals(scan.table.name())
        && table.reference().equals(scan.table.reference())
        && required.equals(scan.required)
        && conditions.equals(scan.conditions)
        && Objects.equals(limit, scan.limit)
        && options.equals(scan.options);
  }

  @Override
  public int hashCode() {
    return Objects.hash(table.name(), table.reference(), required);
  }
}
