package org.icecomb.spark.convert;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.Transform;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.WriteOrder;

/** Conversion of partition transforms and sort orders between Spark and the planner's JSON. */
public final class Transforms {

  private Transforms() {}

  public static ArrayNode toJson(Transform[] transforms) {
    ArrayNode array = Json.array();
    for (Transform transform : transforms) {
      ObjectNode object = array.addObject();
      object.put("name", transform.name());
      ArrayNode arguments = object.putArray("arguments");
      for (Expression argument : transform.arguments()) {
        ObjectNode json = arguments.addObject();
        if (argument instanceof NamedReference reference) {
          json.set("column", Json.array(reference.fieldNames()));
        } else if (argument instanceof Literal<?> literal) {
          json.set("value", Values.toJson(literal.value()));
        } else {
          json.put("text", argument.describe());
        }
      }
    }
    return array;
  }

  /**
   * A table's partitioning. SHOW CREATE TABLE of Spark 3.5 recognizes buckets by their name and
   * shows one of a column as CLUSTERED BY after the others: if that would be wrong, buckets get
   * another spelling of the name, which icecomb treats as equal.
   */
  public static Transform[] fromJson(JsonNode transforms) {
    List<Transform> result = new ArrayList<>();
    for (JsonNode transform : transforms) {
      result.add(one(transform));
    }
    int last = result.size() - 1;
    for (int i = 0; i <= last; i++) {
      Transform transform = result.get(i);
      boolean nested = transform.references()[0].fieldNames().length > 1;
      if (transform.name().equals("bucket") && (i < last || nested)) {
        result.set(i, Expressions.apply("BUCKET", transform.arguments()));
      }
    }
    return result.toArray(new Transform[0]);
  }

  /** Spark recognizes some transforms by class, not by name, so each has its own factory. */
  public static Transform one(JsonNode transform) {
    String name = transform.get("name").asText();
    Integer number = null;
    String column = null;
    for (JsonNode argument : transform.get("arguments")) {
      if (argument.has("column")) {
        column = quoted(Json.names(argument.get("column")));
      } else {
        number = argument.get("value").asInt();
      }
    }
    return switch (name) {
      case "identity" -> Expressions.identity(column);
      case "years" -> Expressions.years(column);
      case "months" -> Expressions.months(column);
      case "days" -> Expressions.days(column);
      case "hours" -> Expressions.hours(column);
      case "bucket" -> Expressions.bucket(number, column);
      default ->
          number == null
              ? Expressions.apply(name, Expressions.column(column))
              : Expressions.apply(name, Expressions.literal(number), Expressions.column(column));
    };
  }

  public static SortOrder[] ordering(List<WriteOrder> ordering) {
    List<SortOrder> result = new ArrayList<>();
    for (WriteOrder order : ordering) {
      boolean ascending = order.direction().equals("asc");
      boolean nullsFirst = order.nulls().equals("first");
      result.add(
          Expressions.sort(
              one(order.transform()),
              ascending ? SortDirection.ASCENDING : SortDirection.DESCENDING,
              nullsFirst ? NullOrdering.NULLS_FIRST : NullOrdering.NULLS_LAST));
    }
    return result.toArray(new SortOrder[0]);
  }

  /** A column of a table by its name, which may contain any characters. */
  public static NamedReference column(String name) {
    return Expressions.column(quoted(new String[] {name}));
  }

  private static String quoted(String[] path) {
    StringBuilder text = new StringBuilder();
    for (String name : path) {
      text.append(text.length() == 0 ? "" : ".").append('`').append(name.replace("`", "``")).append('`');
    }
    return text.toString();
  }
}
