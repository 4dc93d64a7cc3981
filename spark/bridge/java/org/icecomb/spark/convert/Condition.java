package org.icecomb.spark.convert;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.planner.Json;

/**
 * A row filter that is converted completely: AND, OR and NOT over comparisons of a column, or a
 * partition transform of one, with a literal.
 *
 * <p>Spark's own conversion of an OR leaves out the branches it does not understand, which loses
 * rows. A predicate with a part that cannot be expressed here is therefore not converted at all.
 */
public sealed interface Condition extends Serializable {

  /** The condition in the planner's JSON. */
  ObjectNode toJson();

  /** The condition as plans show it, in the words of Iceberg's own scans. */
  String description();

  /**
   * The condition on one data file, as a filter of Spark's data sources.
   *
   * @param columns the columns of the table in the file
   * @param weaker whether the result may be true for more rows than the condition; never under NOT
   * @return null if the file has no column for it, or cannot be filtered by such values
   */
  Filter onFile(FileColumns columns, boolean weaker);

  /** The columns of a table in one data file. */
  interface FileColumns {
    /** The quoted physical name, or null if the file has no such column of a comparable type. */
    String physicalName(String[] path, DataType literalType);

    /** Whether the file has bounds of floating-point columns only if they contain no NaN. */
    boolean boundsKnowNaN();

    /**
     * Converts a value to the form of this file's filters.
     *
     * @param value a non-null value in Spark's internal form
     * @return null if the file cannot be filtered by this value
     */
    default Object literal(Object value, DataType type) {
      return CatalystTypeConverters.convertToScala(value, type);
    }
  }

  /**
   * Converts a predicate of Spark.
   *
   * @param schema the table's schema
   * @return null if any part of the predicate cannot be converted
   */
  static Condition of(Predicate predicate, StructType schema) {
    return of(predicate, schema, true);
  }

  /**
   * @param isSelecting whether rows are selected for which it is true, not those for which it is
   *     false: it may then be false where it is unknown
   */
  private static Condition of(Predicate predicate, StructType schema, boolean isSelecting) {
    Expression[] children = predicate.children();
    switch (predicate.name()) {
      case "ALWAYS_TRUE", "ALWAYS_FALSE":
        return new Always(predicate.name().equals("ALWAYS_TRUE"));
      case "AND", "OR":
        Condition left = child(children[0], schema, isSelecting);
        Condition right = child(children[1], schema, isSelecting);
        return left == null || right == null
            ? null
            : new Both(predicate.name().equals("AND"), left, right);
      case "NOT":
        Condition negated = child(children[0], schema, false);
        return negated == null ? null : new Not(negated);
      case "IS_NULL", "IS_NOT_NULL":
        Term term = Term.of(children[0], schema);
        return term == null ? null : new NullCheck(term, predicate.name().equals("IS_NULL"));
      case "IN":
        return In.of(children, schema, isSelecting);
      default:
        return Comparison.of(predicate.name(), children, schema);
    }
  }

  /**
   * Converts predicates that all hold.
   *
   * @return null if any part of any of them cannot be converted
   */
  static List<Condition> all(Predicate[] predicates, StructType schema) {
    List<Condition> conditions = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Condition condition = of(predicate, schema);
      if (condition == null) {
        return null;
      }
      conditions.add(condition);
    }
    return conditions;
  }

  static ArrayNode toJson(List<Condition> conditions) {
    ArrayNode array = Json.array();
    conditions.forEach(condition -> array.add(condition.toJson()));
    return array;
  }

  /** Conditions that all hold, as plans show them. */
  static String description(List<Condition> conditions) {
    return conditions.stream().map(Condition::description).collect(Collectors.joining(", "));
  }

  private static Condition child(
      Expression expression, StructType schema, boolean isSelecting) {
    return expression instanceof Predicate predicate ? of(predicate, schema, isSelecting) : null;
  }

  private static boolean comparable(Expression literal, Term term) {
    return literal instanceof Literal<?> value
        && value.dataType().equals(term.type())
        && Values.isSupported(value.dataType());
  }

  /** A condition that holds for every row, or for none. */
  record Always(boolean holds) implements Condition {

    @Override
    public ObjectNode toJson() {
      return Json.object().put("op", holds ? "always_true" : "always_false");
    }

    @Override
    public String description() {
      return String.valueOf(holds);
    }

    /** Always null: the planner has already left out the files that this would. */
    @Override
    public Filter onFile(FileColumns columns, boolean weaker) {
      return null;
    }
  }

  /** AND or OR. */
  record Both(boolean and, Condition left, Condition right) implements Condition {

    @Override
    public ObjectNode toJson() {
      ObjectNode json = Json.object().put("op", and ? "and" : "or");
      json.putArray("children").add(left.toJson()).add(right.toJson());
      return json;
    }

    @Override
    public String description() {
      return "(" + left.description() + (and ? " AND " : " OR ") + right.description() + ")";
    }

    @Override
    public Filter onFile(FileColumns columns, boolean weaker) {
      Filter first = left.onFile(columns, weaker);
      Filter second = right.onFile(columns, weaker);
      if (first != null && second != null) {
        return and
            ? new org.apache.spark.sql.sources.And(first, second)
            : new org.apache.spark.sql.sources.Or(first, second);
      }
      if (!and || !weaker) {
        return null;
      }
      return first == null ? second : first;
    }
  }

  record Not(Condition condition) implements Condition {

    @Override
    public ObjectNode toJson() {
      ObjectNode json = Json.object().put("op", "not");
      json.set("child", condition.toJson());
      return json;
    }

    @Override
    public String description() {
      return condition instanceof In in
          ? "(" + in.term() + " IS NOT NULL AND " + in.term() + " NOT IN (" + in.listed() + "))"
          : "NOT (" + condition.description() + ")";
    }

    @Override
    public Filter onFile(FileColumns columns, boolean weaker) {
      Filter inner = condition.onFile(columns, false);
      return inner == null ? null : new org.apache.spark.sql.sources.Not(inner);
    }
  }

  record NullCheck(Term term, boolean isNull) implements Condition {

    @Override
    public ObjectNode toJson() {
      ObjectNode json = Json.object().put("op", isNull ? "is_null" : "not_null");
      term.into(json);
      return json;
    }

    @Override
    public String description() {
      return term + (isNull ? " IS NULL" : " IS NOT NULL");
    }

    @Override
    public Filter onFile(FileColumns columns, boolean weaker) {
      String name = term.physicalName(columns, null);
      if (name == null) {
        return null;
      }
      return isNull
          ? new org.apache.spark.sql.sources.IsNull(name)
          : new org.apache.spark.sql.sources.IsNotNull(name);
    }
  }

  record In(Term term, List<Object> values) implements Condition {

    static Condition of(Expression[] children, StructType schema, boolean isSelecting) {
      Term term = Term.of(children[0], schema);
      if (term == null) {
        return null;
      }
      List<Object> values = new ArrayList<>();
      for (int i = 1; i < children.length; i++) {
        if (!comparable(children[i], term)) {
          return null;
        }
        Object value = ((Literal<?>) children[i]).value();
        if (value != null) {
          values.add(value);
        }
      }
      // A null among the values makes "not found" unknown instead of false, which matters under NOT.
      boolean hasNull = values.size() < children.length - 1;
      return hasNull && !isSelecting ? null : new In(term, values);
    }

    @Override
    public ObjectNode toJson() {
      ObjectNode json = Json.object().put("op", "in");
      term.into(json);
      json.set("type", Schemas.toJson(term.type()));
      ArrayNode array = json.putArray("values");
      values.forEach(value -> array.add(Values.toJson(value)));
      return json;
    }

    @Override
    public String description() {
      return term + " IN (" + listed() + ")";
    }

    private String listed() {
      return values.stream().map(Values::description).collect(Collectors.joining(", "));
    }

    @Override
    public Filter onFile(FileColumns columns, boolean weaker) {
      String name = term.physicalName(columns, term.type());
      if (name == null || values.isEmpty()) {
        return null;
      }
      if (FloatingPoint.is(term.type())) {
        return FloatingPoint.in(name, values, columns, weaker);
      }
      Object[] literals =
          values.stream().map(value -> columns.literal(value, term.type())).toArray();
      return Arrays.stream(literals).allMatch(Objects::nonNull)
          ? new org.apache.spark.sql.sources.In(name, literals)
          : null;
    }
  }

  /** A term, an operator by its JSON name, and a literal of the term's type. */
  record Comparison(String operator, Term term, Object value)
      implements Condition {

    private static final Map<String, String> OPERATORS =
        Map.of(
            "=", "eq", "<>", "not_eq", "<=>", "eq_null_safe", "<", "lt", "<=", "lt_eq", ">", "gt",
            ">=", "gt_eq", "STARTS_WITH", "starts_with");
    private static final Map<String, String> SIGNS =
        Map.of("lt", "<", "lt_eq", "<=", "gt", ">", "gt_eq", ">=");
    private static final Map<String, String> MIRRORED =
        Map.of(
            "eq", "eq", "not_eq", "not_eq", "eq_null_safe", "eq_null_safe", "lt", "gt", "lt_eq",
            "gt_eq", "gt", "lt", "gt_eq", "lt_eq");

    static Condition of(String name, Expression[] children, StructType schema) {
      String operator = OPERATORS.get(name);
      if (operator == null || children.length != 2) {
        return null;
      }
      Expression reference = children[0];
      Expression literal = children[1];
      if (reference instanceof Literal<?>) {
        reference = children[1];
        literal = children[0];
        operator = MIRRORED.get(operator);
      }
      Term term = Term.of(reference, schema);
      if (operator == null || term == null || !comparable(literal, term)) {
        return null;
      }
      Object value = ((Literal<?>) literal).value();
      if (value == null && !operator.equals("eq_null_safe")) {
        return null;
      }
      return new Comparison(operator, term, value);
    }

    @Override
    public ObjectNode toJson() {
      ObjectNode json = Json.object().put("op", operator);
      term.into(json);
      json.set("type", Schemas.toJson(term.type()));
      json.set("value", Values.toJson(value));
      return json;
    }

    @Override
    public String description() {
      boolean isNaN = value instanceof Number number && Double.isNaN(number.doubleValue());
      String shown = Values.description(value);
      return switch (operator) {
        case "eq" -> isNaN ? "is_nan(" + term + ")" : term + " = " + shown;
        case "not_eq" -> isNaN ? "not_nan(" + term + ")" : term + " != " + shown;
        case "eq_null_safe" -> {
          if (value == null) {
            yield term + " IS NULL";
          }
          yield isNaN ? "is_nan(" + term + ")" : term + " = " + shown;
        }
        case "starts_with" -> term + " LIKE '" + value + "%'";
        default -> term + " " + SIGNS.get(operator) + " " + shown;
      };
    }

    @Override
    public Filter onFile(FileColumns columns, boolean weaker) {
      String name = term.physicalName(columns, term.type());
      if (name == null) {
        return null;
      }
      if (FloatingPoint.is(term.type()) && value != null) {
        return FloatingPoint.compared(operator, name, value, columns, weaker);
      }
      Object literal = value == null ? null : columns.literal(value, term.type());
      if (value != null && literal == null) {
        return null;
      }
      return switch (operator) {
        case "eq" -> new org.apache.spark.sql.sources.EqualTo(name, literal);
        case "not_eq" ->
            new org.apache.spark.sql.sources.Not(
                new org.apache.spark.sql.sources.EqualTo(name, literal));
        case "eq_null_safe" ->
            literal == null
                ? new org.apache.spark.sql.sources.IsNull(name)
                : new org.apache.spark.sql.sources.EqualNullSafe(name, literal);
        case "lt" -> new org.apache.spark.sql.sources.LessThan(name, literal);
        case "lt_eq" -> new org.apache.spark.sql.sources.LessThanOrEqual(name, literal);
        case "gt" -> new org.apache.spark.sql.sources.GreaterThan(name, literal);
        case "gt_eq" -> new org.apache.spark.sql.sources.GreaterThanOrEqual(name, literal);
        case "starts_with" ->
            new org.apache.spark.sql.sources.StringStartsWith(name, (String) literal);
        default -> throw new IllegalStateException(operator);
      };
    }
  }
}
