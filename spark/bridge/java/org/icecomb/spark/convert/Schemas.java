package org.icecomb.spark.convert;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.planner.Json;

/**
 * Spark schemas with Iceberg's field ids in the metadata of their fields.
 *
 * <p>The planner creates them; this side never maps a type. Users see schemas without ids, so that
 * these do not get into other tables with a query's output; {@link #withIds} adds them again.
 */
public final class Schemas {

  public static final String FIELD_ID = "parquet.field.id";
  /** Ids of list elements, map keys and values: paths such as {@code element.value} to ids. */
  public static final String NESTED_IDS = "icecomb.nested.ids";
  /** The Iceberg type if Spark's type does not determine it, such as uuid or timestamp_ns. */
  public static final String ICEBERG_TYPE = "icecomb.type";
  /** Such types of list elements, map keys and values, by the paths of their ids. */
  public static final String NESTED_TYPES = "icecomb.nested.types";
  /** Spark's key of the default of new rows, as SQL. */
  public static final String CURRENT_DEFAULT = "CURRENT_DEFAULT";
  /** The initial default, as text of the planner's JSON; <code>{}</code> for that of a struct. */
  public static final String DEFAULT = "icecomb.default";

  private Schemas() {}

  public static StructType parse(JsonNode schema) {
    return (StructType) DataType.fromJson(Json.text(Variants.known(schema)));
  }

  public static DataType parseType(JsonNode type) {
    return DataType.fromJson(Json.text(type));
  }

  public static JsonNode toJson(DataType type) {
    return Json.parse(type.json());
  }

  /**
   * The JSON of columns as a value of Hadoop's configuration, which puts settings, secrets among
   * them, and the environment into values for <code>${…}</code>.
   */
  public static String setting(StructType columns) {
    return columns.json().replace("$", "\\u0024");
  }

  /** The Iceberg id of a field, or -1 if it has none. */
  public static int id(StructField field) {
    return field.metadata().contains(FIELD_ID) ? (int) field.metadata().getLong(FIELD_ID) : -1;
  }

  /** The place of the field with an id, or -1. */
  public static int place(StructType struct, int id) {
    for (int i = 0; id >= 0 && i < struct.size(); i++) {
      if (id(struct.fields()[i]) == id) {
        return i;
      }
    }
    return -1;
  }

  /** A nullable field with an Iceberg id. */
  public static StructField withId(String name, DataType type, int id) {
    return new StructField(name, type, true, new MetadataBuilder().putLong(FIELD_ID, id).build());
  }

  /** Such as {@code uuid} if Spark's type is wider or coarser than Iceberg's; else empty. */
  public static String icebergType(StructField field) {
    return field.metadata().contains(ICEBERG_TYPE) ? field.metadata().getString(ICEBERG_TYPE) : "";
  }

  public static boolean isUuid(StructField field) {
    return icebergType(field).equals("uuid");
  }

  /** The schema as users see it: without ids and marks. */
  public static StructType visible(StructType schema) {
    return (StructType) visibleType(schema);
  }

  private static DataType visibleType(DataType type) {
    if (type instanceof StructType struct) {
      List<StructField> fields = new ArrayList<>();
      for (StructField field : struct.fields()) {
        Metadata metadata =
            new MetadataBuilder()
                .withMetadata(field.metadata())
                .remove(FIELD_ID)
                .remove(NESTED_IDS)
                .remove(ICEBERG_TYPE)
                .remove(NESTED_TYPES)
                .remove(DEFAULT)
                .remove(Variants.UNKNOWN)
                .build();
        fields.add(
            new StructField(field.name(), visibleType(field.dataType()), field.nullable(), metadata));
      }
      return struct(fields);
    }
    if (type instanceof ArrayType array) {
      return new ArrayType(visibleType(array.elementType()), array.containsNull());
    }
    if (type instanceof MapType map) {
      return new MapType(
          visibleType(map.keyType()), visibleType(map.valueType()), map.valueContainsNull());
    }
    return type;
  }

  /**
   * The fields that Spark asks for, as the table's fields with their ids.
   *
   * @param requested a part of {@code table}: fewer columns, fewer nested fields, any order
   * @param table the table's schema with ids
   */
  public static StructType withIds(StructType requested, StructType table) {
    List<StructField> fields = new ArrayList<>();
    for (StructField field : requested.fields()) {
      StructField known = table.apply(field.name());
      fields.add(
          new StructField(
              known.name(),
              typeWithIds(field.dataType(), known.dataType()),
              known.nullable(),
              known.metadata()));
    }
    return struct(fields);
  }

  private static DataType typeWithIds(DataType requested, DataType known) {
    if (requested instanceof StructType part && known instanceof StructType whole) {
      return withIds(part, whole);
    }
    if (requested instanceof ArrayType part && known instanceof ArrayType whole) {
      return new ArrayType(
          typeWithIds(part.elementType(), whole.elementType()), whole.containsNull());
    }
    if (requested instanceof MapType part && known instanceof MapType whole) {
      return new MapType(
          typeWithIds(part.keyType(), whole.keyType()),
          typeWithIds(part.valueType(), whole.valueType()),
          whole.valueContainsNull());
    }
    return known;
  }

  /**
   * The fields of a table that Spark asks for, in the table's order. Lists and maps are whole.
   *
   * @param requested a part of {@code table}: fewer columns, fewer nested fields, any order
   * @param table the table's schema with ids
   */
  public static StructType part(StructType requested, StructType table) {
    List<StructField> fields = new ArrayList<>();
    for (StructField known : table.fields()) {
      if (requested.getFieldIndex(known.name()).isDefined()) {
        DataType asked = requested.apply(known.name()).dataType();
        DataType type =
            asked instanceof StructType part && known.dataType() instanceof StructType whole
                ? part(part, whole)
                : known.dataType();
        fields.add(new StructField(known.name(), type, known.nullable(), known.metadata()));
      }
    }
    return struct(fields);
  }

  /** The ids of the fields; for structs, of the fields inside them. */
  public static List<Integer> leafIds(StructType schema) {
    List<Integer> ids = new ArrayList<>();
    for (StructField field : schema.fields()) {
      if (field.dataType() instanceof StructType struct && !struct.isEmpty()) {
        ids.addAll(leafIds(struct));
      } else {
        ids.add(id(field));
      }
    }
    return ids;
  }

  /** The field at a path of struct fields, or null if there is none. */
  public static StructField find(StructType schema, String... path) {
    StructField found = null;
    DataType type = schema;
    for (String name : path) {
      if (!(type instanceof StructType struct) || struct.getFieldIndex(name).isEmpty()) {
        return null;
      }
      found = struct.apply(name);
      type = found.dataType();
    }
    return found;
  }

  public static StructType struct(List<StructField> fields) {
    return new StructType(fields.toArray(new StructField[0]));
  }
}
