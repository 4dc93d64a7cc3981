package org.icecomb.spark.convert;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.SparkVersion;

/**
 * Variants, which Spark has from version 4.0 on. Before, their columns are shown as binary ones,
 * which are refused where they are read or written.
 */
public final class Variants {

  /** The metadata key of a field with values that this Spark does not have. */
  static final String UNKNOWN = "icecomb.unknown";

  private static final String VARIANT = "variant";
  private static final String COMMENT = "comment";
  private static final String[] INSIDE = {"elementType", "keyType", "valueType"};

  private Variants() {}

  public static boolean is(DataType type) {
    return type.typeName().equals(VARIANT);
  }

  /** The first field that is a variant or has some inside; null if there is none. */
  public static StructField first(StructType columns) {
    for (StructField field : columns.fields()) {
      if (isIn(field.dataType())) {
        return field;
      }
    }
    return null;
  }

  private static boolean isIn(DataType type) {
    if (type instanceof StructType struct) {
      return first(struct) != null;
    }
    if (type instanceof ArrayType array) {
      return isIn(array.elementType());
    }
    return type instanceof MapType map ? isIn(map.valueType()) : is(type);
  }

  /** A schema of the planner, in the types of this Spark. */
  static JsonNode known(JsonNode schema) {
    if (SparkVersion.hasVariants()) {
      return schema;
    }
    JsonNode known = schema.deepCopy();
    known.path("fields").forEach(field -> replace((ObjectNode) field));
    return known;
  }

  private static void replace(ObjectNode field) {
    if (replaced(field, "type")) {
      ObjectNode metadata = field.withObject("/metadata");
      String doc = metadata.path(COMMENT).asText();
      String told = VARIANT + ", which this Spark cannot read";
      metadata.put(UNKNOWN, VARIANT).put(COMMENT, doc.isEmpty() ? told : told + ": " + doc);
    }
  }

  /** Replaces variants by binary values outside of structs; returns whether there were any. */
  private static boolean replaced(ObjectNode holder, String member) {
    JsonNode type = holder.path(member);
    if (type.asText().equals(VARIANT)) {
      holder.put(member, "binary");
      return true;
    }
    type.path("fields").forEach(field -> replace((ObjectNode) field));
    boolean found = false;
    for (String inside : INSIDE) {
      found |= type.has(inside) && replaced((ObjectNode) type, inside);
    }
    return found;
  }

  /**
   * Refuses columns with values that this Spark does not have.
   *
   * @param columns columns with ids
   * @param read whether they are read; else they are written
   */
  public static void check(StructType columns, boolean read) {
    for (StructField field : columns.fields()) {
      if (field.metadata().contains(UNKNOWN)) {
        throw SparkErrors.unsupported(
            "Column " + field.name() + " cannot be " + (read ? "read" : "written")
                + " by Spark: Spark " + SparkSession.active().version()
                + " has no type for Iceberg's " + VARIANT,
            read
                ? "Select the other columns by name, or use Spark 4.0 or later."
                : "Use Spark 4.1 or later, or write rows from Python.");
      }
      check(field.dataType(), read);
    }
  }

  private static void check(DataType type, boolean read) {
    if (type instanceof StructType struct) {
      check(struct, read);
    } else if (type instanceof ArrayType array) {
      check(array.elementType(), read);
    } else if (type instanceof MapType map) {
      check(map.keyType(), read);
      check(map.valueType(), read);
    }
  }
}
