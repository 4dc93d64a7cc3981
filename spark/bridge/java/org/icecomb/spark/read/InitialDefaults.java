package org.icecomb.spark.read;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Values;
import org.icecomb.spark.planner.Json;

/** The values of fields in rows that were written before these were added. */
final class InitialDefaults {

  private InitialDefaults() {}

  /** Whether a field has an initial default that is not null. */
  static boolean has(StructField field) {
    return field.metadata().contains(Schemas.DEFAULT);
  }

  /** The value of a field that a file lacks, as for {@link Constants#vector}; null by default. */
  static Object of(StructField field) {
    if (!has(field)) {
      return null;
    }
    if (field.dataType() instanceof StructType struct) {
      Map<String, Object> values = new HashMap<>();
      for (StructField inside : struct.fields()) {
        values.put(inside.name(), of(inside));
      }
      return values;
    }
    return Values.fromJson(Json.parse(field.metadata().getString(Schemas.DEFAULT)), field.dataType());
  }

  /** The vector of a field that a file lacks. */
  static ColumnVector vector(StructField field) {
    return Constants.vector(field.dataType(), of(field));
  }

  /**
   * A column with the defaults of fields that the file lacks inside of it.
   *
   * @param missing the ids of these fields
   */
  static ColumnVector inside(ColumnVector vector, DataType type, Set<Integer> missing) {
    if (missing.isEmpty()) {
      return vector;
    }
    if (type instanceof StructType struct) {
      ColumnVector[] children = new ColumnVector[struct.size()];
      for (int i = 0; i < children.length; i++) {
        StructField field = struct.fields()[i];
        children[i] =
            missing.contains(Schemas.id(field))
                ? vector(field)
                : inside(vector.getChild(i), field.dataType(), missing);
      }
      return new NestedColumnVector(vector, type, children);
    }
    if (type instanceof ArrayType array) {
      return new NestedColumnVector(
          vector, type, inside(vector.getChild(0), array.elementType(), missing));
    }
    if (type instanceof MapType map) {
      return new NestedColumnVector(
          vector,
          type,
          inside(vector.getChild(0), map.keyType(), missing),
          inside(vector.getChild(1), map.valueType(), missing));
    }
    return vector;
  }
}
