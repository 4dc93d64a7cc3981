package org.icecomb.spark.read;

import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.hadoop.hive.ql.io.sarg.PredicateLeaf;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgument.TruthValue;
import org.apache.hadoop.hive.ql.io.sarg.SearchArgumentFactory;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.EqualNullSafe;
import org.apache.spark.sql.sources.EqualTo;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.GreaterThan;
import org.apache.spark.sql.sources.GreaterThanOrEqual;
import org.apache.spark.sql.sources.In;
import org.apache.spark.sql.sources.IsNotNull;
import org.apache.spark.sql.sources.IsNull;
import org.apache.spark.sql.sources.LessThan;
import org.apache.spark.sql.sources.LessThanOrEqual;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.icecomb.spark.convert.Condition;

/**
 * Conditions as ORC asks them of its statistics, to leave out stripes and groups of rows.
 *
 * <p>Only what ORC compares as Spark does is asked: whole numbers, and text that both put in the same
 * order. Of anything else, nothing is known.
 */
final class OrcConditions {

  private static final char FIRST_SURROGATE = '\uD800';

  private final SearchArgument.Builder builder = SearchArgumentFactory.newBuilder();

  private OrcConditions() {}

  /**
   * @param columns finds the columns that may be asked about
   * @return null when there is nothing to ask
   */
  static SearchArgument of(List<Condition> conditions, Condition.FileColumns columns) {
    List<Filter> filters =
        conditions.stream()
            .map(condition -> condition.onFile(columns, true))
            .filter(Objects::nonNull)
            .toList();
    if (filters.isEmpty()) {
      return null;
    }
    OrcConditions asked = new OrcConditions();
    asked.builder.startAnd();
    filters.forEach(asked::add);
    return asked.builder.end().build();
  }

  private void add(Filter filter) {
    if (filter instanceof And and) {
      builder.startAnd();
      add(and.left());
      add(and.right());
      builder.end();
    } else if (filter instanceof Or or) {
      builder.startOr();
      add(or.left());
      add(or.right());
      builder.end();
    } else if (filter instanceof Not not) {
      builder.startNot();
      add(not.child());
      builder.end();
    } else {
      addLeaf(filter);
    }
  }

  private void addLeaf(Filter leaf) {
    if (leaf instanceof IsNull is) {
      builder.isNull(is.attribute(), PredicateLeaf.Type.LONG);
    } else if (leaf instanceof IsNotNull is) {
      builder.startNot().isNull(is.attribute(), PredicateLeaf.Type.LONG).end();
    } else if (leaf instanceof EqualTo is && type(is.value()) != null) {
      builder.equals(is.attribute(), type(is.value()), literal(is.value()));
    } else if (leaf instanceof EqualNullSafe is && type(is.value()) != null) {
      builder.nullSafeEquals(is.attribute(), type(is.value()), literal(is.value()));
    } else if (leaf instanceof LessThan is && type(is.value()) != null) {
      builder.lessThan(is.attribute(), type(is.value()), literal(is.value()));
    } else if (leaf instanceof LessThanOrEqual is && type(is.value()) != null) {
      builder.lessThanEquals(is.attribute(), type(is.value()), literal(is.value()));
    } else if (leaf instanceof GreaterThan is && type(is.value()) != null) {
      builder
          .startNot()
          .lessThanEquals(is.attribute(), type(is.value()), literal(is.value()))
          .end();
    } else if (leaf instanceof GreaterThanOrEqual is && type(is.value()) != null) {
      builder.startNot().lessThan(is.attribute(), type(is.value()), literal(is.value())).end();
    } else if (leaf instanceof In in && type(in.values()) != null) {
      Object[] literals = Arrays.stream(in.values()).map(OrcConditions::literal).toArray();
      builder.in(in.attribute(), type(in.values()), literals);
    } else {
      builder.literal(TruthValue.YES_NO_NULL);
    }
  }

  private static PredicateLeaf.Type type(Object[] values) {
    PredicateLeaf.Type type = values.length == 0 ? null : type(values[0]);
    return Arrays.stream(values).allMatch(value -> type(value) == type) ? type : null;
  }

  /** The type to compare a literal as, or null where ORC compares otherwise than Spark. */
  private static PredicateLeaf.Type type(Object value) {
    if (value instanceof Integer || value instanceof Long) {
      return PredicateLeaf.Type.LONG;
    }
    // ORC compares UTF-16, Spark bytes of UTF-8: beyond this character they differ.
    return value instanceof String text && text.chars().allMatch(c -> c < FIRST_SURROGATE)
        ? PredicateLeaf.Type.STRING
        : null;
  }

  private static Object literal(Object value) {
    return value instanceof Integer number ? Long.valueOf(number) : value;
  }
}
