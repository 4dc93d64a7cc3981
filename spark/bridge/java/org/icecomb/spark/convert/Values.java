package org.icecomb.spark.convert;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BooleanNode;
import com.fasterxml.jackson.databind.node.IntNode;
import com.fasterxml.jackson.databind.node.LongNode;
import com.fasterxml.jackson.databind.node.NullNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import com.fasterxml.jackson.databind.node.DoubleNode;
import java.math.BigDecimal;
import java.util.Base64;
import java.util.HexFormat;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.planner.Json;

/**
 * Single values as JSON: dates are days and timestamps microseconds since 1970, decimals are text,
 * binary is base64. These are Spark's internal values, too, so no calendar is involved.
 */
public final class Values {

  private Values() {}

  /** Whether values of a type can travel; nested, interval and other types cannot. */
  public static boolean isSupported(DataType type) {
    return type instanceof BooleanType
        || isInt(type)
        || isLong(type)
        || type instanceof FloatType
        || type instanceof DoubleType
        || type instanceof DecimalType
        || type instanceof StringType
        || type instanceof BinaryType;
  }

  /** Writes a value of Spark's internal form. */
  public static JsonNode toJson(Object value) {
    if (value == null) {
      return NullNode.getInstance();
    }
    if (value instanceof Boolean bool) {
      return BooleanNode.valueOf(bool);
    }
    if (value instanceof Float || value instanceof Double) {
      double number = ((Number) value).doubleValue();
      return Double.isNaN(number) || Double.isInfinite(number)
          ? TextNode.valueOf(Double.toString(number))
          : DoubleNode.valueOf(Double.parseDouble(value.toString()));
    }
    if (value instanceof Long number) {
      return LongNode.valueOf(number);
    }
    if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
      return IntNode.valueOf(((Number) value).intValue());
    }
    if (value instanceof Decimal decimal) {
      return TextNode.valueOf(decimal.toJavaBigDecimal().toPlainString());
    }
    if (value instanceof byte[] bytes) {
      return TextNode.valueOf(Base64.getEncoder().encodeToString(bytes));
    }
    if (value instanceof UTF8String || value instanceof String) {
      return TextNode.valueOf(value.toString());
    }
    throw new IllegalArgumentException("No JSON form for " + value.getClass().getName());
  }

  /** A value of Spark's internal form as plans show it: text in quotes, binary as X'…'. */
  static String description(Object value) {
    if (value instanceof UTF8String || value instanceof String) {
      return "'" + value + "'";
    }
    return value instanceof byte[] bytes
        ? "X'" + HexFormat.of().withUpperCase().formatHex(bytes) + "'"
        : String.valueOf(value);
  }

  /** Writes a value of Spark's internal form: arrays as lists, maps of texts as objects. */
  public static JsonNode toJson(Object value, DataType type) {
    if (value != null && type instanceof ArrayType array) {
      ArrayNode list = Json.array();
      for (Object element : ((ArrayData) value).toObjectArray(array.elementType())) {
        list.add(toJson(element, array.elementType()));
      }
      return list;
    }
    if (value != null && type instanceof MapType map) {
      ObjectNode object = Json.object();
      Object[] keys = ((MapData) value).keyArray().toObjectArray(map.keyType());
      Object[] values = ((MapData) value).valueArray().toObjectArray(map.valueType());
      for (int i = 0; i < keys.length; i++) {
        object.set(keys[i].toString(), toJson(values[i], map.valueType()));
      }
      return object;
    }
    return toJson(value);
  }

  /** Reads a value into Spark's internal form. */
  public static Object fromJson(JsonNode value, DataType type) {
    if (value == null || value.isNull()) {
      return null;
    }
    if (type instanceof BooleanType) {
      return value.booleanValue();
    }
    if (type instanceof ByteType) {
      return (byte) value.intValue();
    }
    if (type instanceof ShortType) {
      return (short) value.intValue();
    }
    if (isInt(type)) {
      return value.intValue();
    }
    if (isLong(type)) {
      return value.longValue();
    }
    if (type instanceof FloatType) {
      return value.isTextual() ? Float.parseFloat(value.asText()) : value.floatValue();
    }
    if (type instanceof DoubleType) {
      return value.isTextual() ? Double.parseDouble(value.asText()) : value.doubleValue();
    }
    if (type instanceof DecimalType decimal) {
      return Decimal.apply(
          new BigDecimal(value.asText()).setScale(decimal.scale()),
          decimal.precision(),
          decimal.scale());
    }
    if (type instanceof BinaryType) {
      return Base64.getDecoder().decode(value.asText());
    }
    if (type instanceof StringType) {
      return UTF8String.fromString(value.asText());
    }
    throw new IllegalArgumentException("No value of type " + type.catalogString() + " in JSON");
  }

  /** Whether Spark holds values of the type as int. */
  static boolean isInt(DataType type) {
    return type instanceof IntegerType
        || type instanceof DateType
        || type instanceof ShortType
        || type instanceof ByteType;
  }

  /** Whether Spark holds values of the type as long. */
  static boolean isLong(DataType type) {
    return type instanceof LongType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType;
  }
}
