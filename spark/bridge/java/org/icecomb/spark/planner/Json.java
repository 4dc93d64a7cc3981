package org.icecomb.spark.planner;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Helpers for JSON between the bridge and the planner, around Spark's own Jackson. */
public final class Json {

  private static final ObjectMapper MAPPER =
      JsonMapper.builder()
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .enable(DeserializationFeature.FAIL_ON_MISSING_CREATOR_PROPERTIES)
          .enable(DeserializationFeature.FAIL_ON_NULL_FOR_PRIMITIVES)
          .build();

  private Json() {}

  public static ObjectNode object() {
    return MAPPER.createObjectNode();
  }

  public static ArrayNode array() {
    return MAPPER.createArrayNode();
  }

  /** A list of names: a namespace or the path of a nested column. */
  public static ArrayNode array(String... names) {
    ArrayNode array = array();
    for (String name : names) {
      array.add(name);
    }
    return array;
  }

  public static ObjectNode object(Map<String, String> entries) {
    ObjectNode object = object();
    entries.forEach(object::put);
    return object;
  }

  /** Parses one JSON text of the planner or of Spark itself, so that a failure is a bug. */
  public static JsonNode parse(String text) {
    try {
      return MAPPER.readTree(text);
    } catch (JsonProcessingException e) {
      throw new IllegalArgumentException("Not JSON: " + text, e);
    }
  }

  /** Parses one JSON text of the protocol. */
  static JsonNode parse(byte[] text) throws IOException {
    return MAPPER.readTree(text);
  }

  /** A message of the protocol as JSON. */
  public static ObjectNode of(Record message) {
    return MAPPER.valueToTree(message);
  }

  /**
   * Parses a message from JSON; a missing or unknown member is an error.
   *
   * @throws IOException if it is another message
   */
  static <T extends Record> T as(Class<T> message, JsonNode json) throws IOException {
    return MAPPER.treeToValue(json, message);
  }

  /**
   * Parses a message from a part of a text, without building a tree.
   *
   * @throws IOException if it is another message
   */
  static <T extends Record> T as(Class<T> message, byte[] text, int from, int length)
      throws IOException {
    return MAPPER.readValue(text, from, length, message);
  }

  public static String text(JsonNode node) {
    try {
      return MAPPER.writeValueAsString(node);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("A JSON tree cannot be written", e);
    }
  }

  public static String[] names(JsonNode array) {
    String[] names = new String[array.size()];
    for (int i = 0; i < names.length; i++) {
      names[i] = array.get(i).asText();
    }
    return names;
  }

  public static List<JsonNode> elements(JsonNode array) {
    List<JsonNode> elements = new ArrayList<>();
    array.forEach(elements::add);
    return elements;
  }

  /** The text of a member, or null where it is absent or a JSON null. */
  public static String textOrNull(JsonNode object, String member) {
    JsonNode value = object.get(member);
    return value == null || value.isNull() ? null : value.asText();
  }
}
