package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.functions.PartitionTransform;
import org.icecomb.spark.planner.Json;

/**
 * One field of the partition spec that a table is written with.
 *
 * @param ordinals where the source column stands in a row, one ordinal per level of structs
 * @param widths number of fields of the structs on the way
 */
record PartitionColumn(
    String name, PartitionTransform transform, int[] ordinals, int[] widths, DataType type)
    implements Serializable {

  static PartitionColumn parse(JsonNode field, StructType schema) {
    String[] path = Json.names(field.get("source"));
    int[] ordinals = new int[path.length];
    int[] widths = new int[path.length];
    DataType type = schema;
    for (int i = 0; i < path.length; i++) {
      StructType struct = (StructType) type;
      ordinals[i] = struct.fieldIndex(path[i]);
      type = struct.fields()[ordinals[i]].dataType();
      widths[i] = type instanceof StructType inner ? inner.size() : 0;
    }
    PartitionTransform transform =
        new PartitionTransform(
            PartitionTransform.Kind.valueOf(field.get("transform").asText().toUpperCase(Locale.ROOT)),
            field.path("parameter").asInt(),
            type);
    return new PartitionColumn(field.get("name").asText(), transform, ordinals, widths, type);
  }

  /** The partition value of a row; it may share the row's memory. */
  Object value(InternalRow row) {
    InternalRow level = row;
    int last = ordinals.length - 1;
    for (int i = 0; i < last; i++) {
      if (level.isNullAt(ordinals[i])) {
        return null;
      }
      level = level.getStruct(ordinals[i], widths[i]);
    }
    return level.isNullAt(ordinals[last]) ? null : transform.apply(level.get(ordinals[last], type));
  }
}
