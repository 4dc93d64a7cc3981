package org.icecomb.spark.convert;

import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;

/**
 * The Iceberg id and type of a field, or of a list element, map key or map value below it, which
 * Spark's type does not have.
 *
 * @param field the nearest enclosing field
 * @param path the path below it, such as {@code element.value}; empty for the field itself
 */
public record TypeMark(StructField field, String path) {

  public static TypeMark of(StructField field) {
    return new TypeMark(field, "");
  }

  public TypeMark element() {
    return inside("element");
  }

  public TypeMark key() {
    return inside("key");
  }

  public TypeMark value() {
    return inside("value");
  }

  private TypeMark inside(String part) {
    return new TypeMark(field, path.isEmpty() ? part : path + "." + part);
  }

  /** The name for messages. */
  public String name() {
    return path.isEmpty() ? field.name() : field.name() + "." + path;
  }

  /** The Iceberg id, or -1 if there is none. */
  public int id() {
    if (path.isEmpty()) {
      return Schemas.id(field);
    }
    Metadata ids = nested(Schemas.NESTED_IDS);
    return ids.contains(path) ? (int) ids.getLong(path) : -1;
  }

  /** {@code uuid} or {@code fixed[16]} if Spark's type is wider than Iceberg's; else empty. */
  public String icebergType() {
    if (path.isEmpty()) {
      return Schemas.icebergType(field);
    }
    Metadata types = nested(Schemas.NESTED_TYPES);
    return types.contains(path) ? types.getString(path) : "";
  }

  public boolean isUuid() {
    return icebergType().equals("uuid");
  }

  /** Whether files have nanoseconds, of which Spark is shown microseconds. */
  public boolean isNanoseconds() {
    String type = icebergType();
    return type.equals("timestamp_ns") || type.equals("timestamptz_ns");
  }

  private Metadata nested(String name) {
    return field.metadata().contains(name) ? field.metadata().getMetadata(name) : Metadata.empty();
  }
}
