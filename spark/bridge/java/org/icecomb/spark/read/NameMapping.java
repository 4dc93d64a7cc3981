package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Map;
import org.icecomb.spark.planner.Json;

/** Iceberg's name mapping: field ids for the names in files without ids. */
final class NameMapping {

  private static final NameMapping EMPTY = new NameMapping(Json.array());

  private final Map<String, JsonNode> fields = new HashMap<>();

  private NameMapping(JsonNode mapped) {
    for (JsonNode field : mapped) {
      field.path("names").forEach(name -> fields.put(name.asText(), field));
    }
  }

  static NameMapping parse(String json) {
    return new NameMapping(Json.parse(json));
  }

  /** The field id of a name, or -1. */
  int id(String name) {
    JsonNode field = fields.get(name);
    return field == null ? -1 : field.path("field-id").asInt(-1);
  }

  /** The mapping of the fields inside a field; lists have {@code element}, maps key and value. */
  NameMapping inside(String name) {
    JsonNode field = fields.get(name);
    return field == null ? EMPTY : new NameMapping(field.path("fields"));
  }
}
