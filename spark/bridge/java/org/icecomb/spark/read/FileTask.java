package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.Serializable;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Values;

/**
 * A range of one data file to read.
 *
 * @param constants values of columns that are the same in the whole file, by field id
 * @param deletes packed positions of deleted rows (see {@link PositionDeletes}), or null
 */
record FileTask(
    String path, long start, long length, int specId, Map<Integer, Object> constants, String deletes)
    implements Serializable {

  /** What one Spark task reads. */
  record Group(List<FileTask> files) implements InputPartition {}

  static FileTask parse(JsonNode task, JsonNode deletes, StructType columns) {
    String format = task.get("format").asText();
    if (!format.equalsIgnoreCase("parquet")) {
      throw new UnsupportedOperationException(
          "Data files of format "
              + format
              + " cannot be read by Spark yet: "
              + task.get("path").asText());
    }
    Map<Integer, Object> constants = new HashMap<>();
    JsonNode values = task.path("constants");
    for (StructField column : columns.fields()) {
      JsonNode value = values.get(Integer.toString(Schemas.id(column)));
      if (value != null) {
        constants.put(Schemas.id(column), Values.fromJson(value, column.dataType()));
      }
    }
    JsonNode index = task.get("deletes");
    return new FileTask(
        task.get("path").asText(),
        task.get("start").asLong(),
        task.get("length").asLong(),
        task.path("spec_id").asInt(),
        constants,
        index == null || index.isNull() ? null : deletes.get(index.asInt()).asText());
  }
}
