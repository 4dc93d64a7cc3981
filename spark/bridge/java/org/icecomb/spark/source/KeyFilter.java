package org.icecomb.spark.source;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.BloomFilterMightContain;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EqualTo;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.XxHash64;
import org.apache.spark.sql.catalyst.expressions.aggregate.BloomFilterAggregate;
import org.apache.spark.sql.catalyst.optimizer.InjectRuntimeFilter$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;
import scala.collection.JavaConverters;
import scala.collection.immutable.List$;

/**
 * A Bloom filter of the rows on the left of a join whose keys may be on the right: some of the
 * others pass, too, and no row is lost.
 *
 * <p>Keys are columns that the join's condition requires to be equal, possibly not all of them.
 * Columns compared by {@code <=>}, and types whose equal values may differ in their bytes
 * (floating-point numbers, collated strings), are not keys.
 *
 * @param columns the keys of the left
 * @param values the keys of the right, in the same order
 */
record KeyFilter(List<Expression> columns, List<Expression> values) {

  /** With six hash functions, two percent of other rows pass. */
  private static final long BITS_PER_KEY = 8;

  private static final double FEWEST_KEYS = 1_000;

  /** The filter for the left side of a join, or null. */
  static KeyFilter of(Join join) {
    List<Expression> columns = new ArrayList<>();
    List<Expression> values = new ArrayList<>();
    if (join.condition().isEmpty()) {
      return null;
    }
    for (Expression each :
        JavaConverters.seqAsJavaList(
            InjectRuntimeFilter$.MODULE$.splitConjunctivePredicates(join.condition().get()))) {
      if (each instanceof EqualTo equal) {
        boolean leftFirst = isOf(equal.left(), join.left());
        Expression column = leftFirst ? equal.left() : equal.right();
        Expression value = leftFirst ? equal.right() : equal.left();
        if (isOf(column, join.left())
            && isColumn(column)
            && isOf(value, join.right())
            && RepeatableRows.isRepeatable(value)
            && column.dataType().equals(value.dataType())
            && isHashedAlike(column.dataType())) {
          columns.add(column);
          values.add(value);
        }
      }
    }
    return columns.isEmpty() ? null : new KeyFilter(columns, values);
  }

  private static boolean isOf(Expression key, LogicalPlan side) {
    return key.references().nonEmpty() && key.references().subsetOf(side.outputSet());
  }

  /**
   * Whether it is a column, perhaps widened: cheap, and cannot fail for rows that the join ignores.
   */
  private static boolean isColumn(Expression key) {
    return key instanceof Attribute
        || key instanceof Cast cast
            && cast.child() instanceof Attribute
            && Cast.canUpCast(cast.child().dataType(), cast.dataType());
  }

  /** Whether equal values, and only these, have equal bytes to hash. */
  private static boolean isHashedAlike(DataType type) {
    return type instanceof ByteType
        || type instanceof ShortType
        || type instanceof IntegerType
        || type instanceof LongType
        || type instanceof DecimalType
        || type instanceof DateType
        || type instanceof TimestampType
        || type instanceof TimestampNTZType
        || type instanceof BooleanType
        || type instanceof BinaryType
        || DataTypes.StringType.equals(type) && type.sql().equals("STRING");
  }

  static boolean isIn(Expression condition) {
    return condition instanceof BloomFilterMightContain
        || JavaConverters.seqAsJavaList(condition.children()).stream().anyMatch(KeyFilter::isIn);
  }

  /**
   * The left side with the filter.
   *
   * @param right the query of the keys, which is executed once more than for the join
   * @param keys the estimated maximum number of keys; if there are more, more rows pass
   */
  LogicalPlan over(LogicalPlan left, LogicalPlan right, double keys) {
    long expected = (long) Math.max(FEWEST_KEYS, Math.min(keys, Integer.MAX_VALUE));
    Expression filter =
        new BloomFilterAggregate(
                new XxHash64(CommandPlan.list(values)),
                new Literal(expected, DataTypes.LongType),
                new Literal(expected * BITS_PER_KEY, DataTypes.LongType))
            .toAggregateExpression();
    Alias named =
        new Alias(
            filter,
            "keys",
            NamedExpression.newExprId(),
            List$.MODULE$.empty(),
            Option.empty(),
            List$.MODULE$.empty());
    Expression found = OneValue.of(named, right);
    return new Filter(
        new BloomFilterMightContain(found, new XxHash64(CommandPlan.list(columns))), left);
  }
}
