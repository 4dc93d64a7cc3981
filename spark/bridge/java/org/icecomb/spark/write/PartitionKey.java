package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Values;
import org.icecomb.spark.planner.Json;

/** The partition values of a row, in the order of the partition spec. */
final class PartitionKey {

  private final Object[] values;

  private PartitionKey(Object[] values) {
    this.values = values;
  }

  /** The key of a row; {@link #copy} it before the next row is read. */
  static PartitionKey of(List<PartitionColumn> columns, InternalRow row) {
    Object[] values = new Object[columns.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = columns.get(i).value(row);
    }
    return new PartitionKey(values);
  }

  PartitionKey copy() {
    Object[] copies = new Object[values.length];
    for (int i = 0; i < copies.length; i++) {
      copies[i] = values[i] instanceof UTF8String text ? text.copy() : values[i];
    }
    return new PartitionKey(copies);
  }

  ArrayNode toJson() {
    ArrayNode array = Json.array();
    for (Object value : values) {
      array.add(Values.toJson(value));
    }
    return array;
  }

  /** The folders of this partition under the data location: {@code name=value/} for each field. */
  String toPath(List<PartitionColumn> columns) {
    StringBuilder path = new StringBuilder();
    for (int i = 0; i < values.length; i++) {
      PartitionColumn column = columns.get(i);
      path.append(escaped(column.name()))
          .append('=')
          .append(escaped(column.transform().toHumanString(values[i])))
          .append('/');
    }
    return path.toString();
  }

  private static String escaped(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof PartitionKey key && Arrays.deepEquals(values, key.values);
  }

  @Override
  public int hashCode() {
    return Arrays.deepHashCode(values);
  }
}
