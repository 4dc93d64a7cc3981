package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.parquet.column.statistics.Statistics;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.StringLogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.icecomb.spark.planner.Json;

/**
 * Metrics of the columns of a finished file from its footer, for all row groups together: small
 * enough for the results of many tasks, and all that the planner needs.
 */
final class ColumnMetrics {

  static final String COUNTS = "counts";
  private static final String TRUNCATE = "truncate(";

  private ColumnMetrics() {}

  /**
   * An array for each column with a field id: the id, the size in bytes and, if requested by the
   * mode, the number of values (including nulls), the number of nulls and the two bounds, in
   * Iceberg's binary form of single values as base64; unknown or unrequested ones are null. For
   * data files the number of NaN values follows, if {@link FloatingColumns} knows it.
   *
   * @param modes Iceberg's metrics mode by field id; {@code none} if missing. Bounds are one
   *     character or byte longer than the mode requires, so that the planner sees which were
   *     truncated
   */
  static ArrayNode toJson(List<BlockMetaData> groups, Map<String, String> modes) {
    ArrayNode columns = Json.array();
    int count = groups.isEmpty() ? 0 : groups.get(0).getColumns().size();
    for (int i = 0; i < count; i++) {
      List<ColumnChunkMetaData> chunks = new ArrayList<>();
      for (BlockMetaData group : groups) {
        chunks.add(group.getColumns().get(i));
      }
      PrimitiveType type = chunks.get(0).getPrimitiveType();
      if (type.getId() != null) {
        String mode = modes.get(Integer.toString(type.getId().intValue()));
        columns.add(column(type, chunks, mode));
      }
    }
    return columns;
  }

  private static ArrayNode column(
      PrimitiveType type, List<ColumnChunkMetaData> chunks, String mode) {
    ArrayNode column = Json.array();
    column.add(type.getId().intValue());
    column.add(chunks.stream().mapToLong(ColumnChunkMetaData::getTotalSize).sum());
    if (mode == null) {
      return column.addNull().addNull().addNull().addNull();
    }
    column.add(chunks.stream().mapToLong(ColumnChunkMetaData::getValueCount).sum());
    Statistics<?> all = merged(chunks);
    if (all == null || !all.isNumNullsSet()) {
      return column.addNull().addNull().addNull();
    }
    column.add(all.getNumNulls());
    if (mode.equals(COUNTS) || !all.hasNonNullValue()) {
      return column.addNull().addNull();
    }
    byte[] lower = bound(type, all.genericGetMin(), all.getMinBytes());
    byte[] upper = bound(type, all.genericGetMax(), all.getMaxBytes());
    if (type.getPrimitiveTypeName() != PrimitiveTypeName.BINARY) {
      return column.add(lower).add(upper);
    }
    boolean text = type.getLogicalTypeAnnotation() instanceof StringLogicalTypeAnnotation;
    return column.add(cut(text, mode, lower)).add(cut(text, mode, upper));
  }

  /** The statistics of all chunks, or null if one has values without statistics. */
  private static Statistics<?> merged(List<ColumnChunkMetaData> chunks) {
    Statistics<?> all = null;
    for (ColumnChunkMetaData chunk : chunks) {
      Statistics<?> one = chunk.getStatistics();
      if (one == null
          || !one.isNumNullsSet()
          || (!one.hasNonNullValue() && one.getNumNulls() != chunk.getValueCount())) {
        return null;
      }
      if (all == null) {
        all = one.copy();
      } else {
        all.mergeStatistics(one);
      }
    }
    return all;
  }

  /** Parquet's bytes are Iceberg's except for decimals, which Iceberg stores in minimal length. */
  private static byte[] bound(PrimitiveType type, Object value, byte[] bytes) {
    if (!(type.getLogicalTypeAnnotation() instanceof DecimalLogicalTypeAnnotation)) {
      return bytes;
    }
    BigInteger unscaled =
        value instanceof Number number
            ? BigInteger.valueOf(number.longValue())
            : new BigInteger(bytes);
    return unscaled.toByteArray();
  }

  /**
   * Truncates a bound to one character or byte more than the mode requires.
   *
   * @param text whether the mode counts characters
   */
  static byte[] cut(boolean text, String mode, byte[] bytes) {
    if (bytes == null || !mode.startsWith(TRUNCATE)) {
      return bytes;
    }
    int kept = Integer.parseInt(mode.substring(TRUNCATE.length(), mode.length() - 1)) + 1;
    int end = 0;
    for (int units = 0; end < bytes.length; end++) {
      // a byte that begins with bits 10 continues a character
      if (!text || (bytes[end] & 0xC0) != 0x80) {
        if (units == kept) {
          break;
        }
        units++;
      }
    }
    return Arrays.copyOf(bytes, end);
  }
}
