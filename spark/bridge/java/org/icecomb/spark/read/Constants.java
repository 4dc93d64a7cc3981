package org.icecomb.spark.read;

import java.util.Map;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Columns that have one value in a whole file: identity partitions, metadata, missing columns. */
final class Constants {

  private Constants() {}

  /** A vector of the value, of any length; null makes every row null, structs are maps by name. */
  static ConstantColumnVector vector(DataType type, Object value) {
    ConstantColumnVector vector = new ConstantColumnVector(1, type);
    if (value == null) {
      vector.setNull();
    } else {
      fill(vector, type, value);
    }
    return vector;
  }

  private static void fillStruct(
      ConstantColumnVector vector, StructType type, Map<?, ?> values) {
    for (int i = 0; i < type.size(); i++) {
      StructField field = type.fields()[i];
      vector.setChild(i, vector(field.dataType(), values.get(field.name())));
    }
  }

  private static void fill(ConstantColumnVector vector, DataType type, Object value) {
    vector.setNotNull();
    if (value instanceof Boolean bool) {
      vector.setBoolean(bool);
    } else if (value instanceof Byte number) {
      vector.setByte(number);
    } else if (value instanceof Short number) {
      vector.setShort(number);
    } else if (value instanceof Integer number) {
      vector.setInt(number);
    } else if (value instanceof Long number) {
      vector.setLong(number);
    } else if (value instanceof Float number) {
      vector.setFloat(number);
    } else if (value instanceof Double number) {
      vector.setDouble(number);
    } else if (value instanceof Decimal decimal) {
      vector.setDecimal(decimal, ((DecimalType) type).precision());
    } else if (value instanceof UTF8String text) {
      vector.setUtf8String(text);
    } else if (value instanceof Map<?, ?> values) {
      fillStruct(vector, (StructType) type, values);
    } else {
      vector.setBinary((byte[]) value);
    }
  }
}
