package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.sql.Timestamp;
import java.util.List;
import java.util.Map;
import org.apache.orc.BooleanColumnStatistics;
import org.apache.orc.ColumnStatistics;
import org.apache.orc.DateColumnStatistics;
import org.apache.orc.DecimalColumnStatistics;
import org.apache.orc.DoubleColumnStatistics;
import org.apache.orc.IntegerColumnStatistics;
import org.apache.orc.StringColumnStatistics;
import org.apache.orc.TimestampColumnStatistics;
import org.apache.orc.TypeDescription;
import org.apache.orc.TypeDescription.Category;
import org.icecomb.spark.planner.Json;

/**
 * Metrics of the columns of a finished file from ORC's statistics, in the form of {@link
 * ColumnMetrics}.
 *
 * <p>ORC has no bounds of binary columns. Its bounds of floating-point columns are wrong for some
 * row groups that begin with NaN: they are left out if the sum shows that there was one.
 */
final class OrcColumnMetrics {

  private OrcColumnMetrics() {}

  static ArrayNode toJson(
      TypeDescription schema, ColumnStatistics[] statistics, long rows, Map<String, String> modes) {
    ArrayNode columns = Json.array();
    // without row indexes a writer counts no values, not even rows
    boolean counted = statistics[schema.getId()].getNumberOfValues() == rows;
    addColumns(columns, schema, statistics, rows, counted ? modes : Map.of());
    return columns;
  }

  private static void addColumns(
      ArrayNode columns,
      TypeDescription type,
      ColumnStatistics[] statistics,
      long rows,
      Map<String, String> modes) {
    List<TypeDescription> children = type.getChildren();
    if (children != null && !children.isEmpty()) {
      for (TypeDescription child : children) {
        addColumns(columns, child, statistics, rows, modes);
      }
      return;
    }
    String id = type.getAttributeValue("iceberg.id");
    if (id != null) {
      columns.add(column(type, id, statistics[type.getId()], rows, modes.get(id)));
    }
  }

  private static ArrayNode column(
      TypeDescription type, String id, ColumnStatistics statistics, long rows, String mode) {
    ArrayNode column = Json.array();
    column.add(Integer.parseInt(id));
    column.add(statistics.getBytesOnDisk());
    if (mode == null) {
      return column.addNull().addNull().addNull().addNull();
    }
    // A column inside a struct does not count the rows in which the struct is null.
    column.add(rows);
    column.add(rows - statistics.getNumberOfValues());
    if (mode.equals(ColumnMetrics.COUNTS) || statistics.getNumberOfValues() == 0) {
      return column.addNull().addNull();
    }
    boolean text = type.getCategory() == Category.STRING;
    byte[] lower = bound(type, statistics, true);
    byte[] upper = bound(type, statistics, false);
    column.add(text ? ColumnMetrics.cut(true, mode, lower) : lower);
    return column.add(text ? ColumnMetrics.cut(true, mode, upper) : upper);
  }

  /** A bound in Iceberg's binary form of single values, or null if none is known. */
  private static byte[] bound(TypeDescription type, ColumnStatistics statistics, boolean lower) {
    if (statistics instanceof BooleanColumnStatistics booleans) {
      boolean value = lower ? booleans.getFalseCount() == 0 : booleans.getTrueCount() > 0;
      return new byte[] {(byte) (value ? 1 : 0)};
    }
    if (statistics instanceof IntegerColumnStatistics integers) {
      long value = lower ? integers.getMinimum() : integers.getMaximum();
      return type.getCategory() == Category.INT ? bytes(Math.toIntExact(value)) : bytes(value);
    }
    if (statistics instanceof DateColumnStatistics dates) {
      long day = lower ? dates.getMinimumDayOfEpoch() : dates.getMaximumDayOfEpoch();
      return bytes(Math.toIntExact(day));
    }
    if (statistics instanceof TimestampColumnStatistics moments) {
      Timestamp value = lower ? moments.getMinimumUTC() : moments.getMaximumUTC();
      return value == null ? null : bytes(micros(value));
    }
    if (statistics instanceof DoubleColumnStatistics numbers) {
      if (Double.isNaN(numbers.getSum())) {
        return null;
      }
      double value = lower ? numbers.getMinimum() : numbers.getMaximum();
      return type.getCategory() == Category.FLOAT
          ? bytes(Float.floatToIntBits((float) value))
          : bytes(Double.doubleToLongBits(value));
    }
    if (statistics instanceof DecimalColumnStatistics decimals) {
      var value = lower ? decimals.getMinimum() : decimals.getMaximum();
      BigInteger unscaled =
          value == null
              ? null
              : value.bigDecimalValue().setScale(type.getScale()).unscaledValue();
      return unscaled == null ? null : unscaled.toByteArray();
    }
    if (statistics instanceof StringColumnStatistics texts) {
      String value = lower ? texts.getLowerBound() : texts.getUpperBound();
      return value == null ? null : value.getBytes(StandardCharsets.UTF_8);
    }
    return null;
  }

  private static long micros(Timestamp value) {
    long seconds = Math.floorDiv(value.getTime(), 1_000L);
    return Math.addExact(Math.multiplyExact(seconds, 1_000_000L), value.getNanos() / 1_000L);
  }

  private static byte[] bytes(int value) {
    return ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(value).array();
  }

  private static byte[] bytes(long value) {
    return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array();
  }
}
