package org.icecomb.spark.functions;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.functions.PartitionTransform.Kind;

/**
 * The partition transforms as SQL functions: {@code years, months, days, hours, bucket, truncate}.
 *
 * <p>Spark calls them to cluster and sort rows before a write, and users may, too: {@code SELECT
 * lake.system.bucket(16, id)}.
 */
public final class PartitionFunctions {

  private static final Map<String, Kind> KINDS =
      new TreeMap<>(
          Map.of(
              "years", Kind.YEAR,
              "months", Kind.MONTH,
              "days", Kind.DAY,
              "hours", Kind.HOUR,
              "bucket", Kind.BUCKET,
              "truncate", Kind.TRUNCATE));

  private PartitionFunctions() {}

  /** Spark looks for transforms without a namespace; users find them in {@code system}. */
  public static boolean serves(String[] namespace) {
    return namespace.length == 0 || namespace.length == 1 && namespace[0].equals("system");
  }

  public static List<String> names() {
    return new ArrayList<>(KINDS.keySet());
  }

  /** The function of a name, or null. */
  public static UnboundFunction find(String name) {
    Kind kind = KINDS.get(name.toLowerCase(Locale.ROOT));
    return kind == null ? null : new Unbound(name.toLowerCase(Locale.ROOT), kind);
  }

  /** The function that a class implements for values of a type; null if it is for another type. */
  static BoundFunction of(Class<?> code, DataType source) {
    for (Map.Entry<String, Kind> each : KINDS.entrySet()) {
      BoundFunction found = BoundFunction.of(each.getKey(), each.getValue(), source);
      if (found != null && found.getClass() == code) {
        return found;
      }
    }
    return null;
  }

  /** Whether a canonical name is that of one of these functions, bound to a type. */
  public static boolean isOurs(String canonicalName) {
    return canonicalName != null && canonicalName.startsWith(BoundFunction.CANONICAL_PREFIX);
  }

  /**
   * The transform that a function computes.
   *
   * @param parameter number of buckets or width of truncation
   * @return null if there is no such transform
   */
  public static PartitionTransform transform(String name, int parameter, DataType source) {
    try {
      return new PartitionTransform(KINDS.get(name), parameter, source);
    } catch (UnsupportedOperationException e) {
      return null;
    }
  }

  private record Unbound(String name, Kind kind) implements UnboundFunction {

    @Override
    public org.apache.spark.sql.connector.catalog.functions.BoundFunction bind(StructType inputs) {
      StructField[] fields = inputs.fields();
      boolean hasParameter = kind == Kind.BUCKET || kind == Kind.TRUNCATE;
      if (fields.length != (hasParameter ? 2 : 1)) {
        throw new UnsupportedOperationException("Wrong number of inputs" + expectedInputs());
      }
      if (hasParameter && !isCount(fields[0].dataType())) {
        throw new UnsupportedOperationException(
            kind == Kind.BUCKET
                ? "Expected number of buckets to be tinyint, shortint or int"
                : "Expected truncation width to be tinyint, shortint or int");
      }
      DataType source = widened(fields[fields.length - 1].dataType());
      // The parameter is known only from the rows; 1 is used while types are checked.
      if (transform(name, 1, source) == null) {
        throw new UnsupportedOperationException(expectedValue());
      }
      return BoundFunction.of(name, kind, source);
    }

    private String expectedInputs() {
      return switch (kind) {
        case BUCKET -> " (expected numBuckets and value)";
        case TRUNCATE -> " (expected width and value)";
        default -> "";
      };
    }

    /** The values that it takes, in the words of Iceberg's functions. */
    private String expectedValue() {
      return switch (kind) {
        case BUCKET ->
            "Expected column to be date, tinyint, smallint, int, bigint, decimal, timestamp, "
                + "string, or binary";
        case TRUNCATE ->
            "Expected truncation col to be tinyint, shortint, int, bigint, decimal, string, or "
                + "binary";
        case HOUR -> "Expected value to be timestamp";
        default -> "Expected value to be date or timestamp";
      };
    }

    private static boolean isCount(DataType type) {
      return type instanceof IntegerType || type instanceof ShortType || type instanceof ByteType;
    }

    /**
     * Iceberg has no tinyint and smallint: they are bucketed as int, and truncated to their own
     * type. A bare NULL may be of any type.
     */
    private DataType widened(DataType type) {
      if (type instanceof NullType) {
        return kind == Kind.TRUNCATE ? DataTypes.IntegerType : DataTypes.TimestampType;
      }
      boolean small = type instanceof ByteType || type instanceof ShortType;
      return small && kind != Kind.TRUNCATE ? DataTypes.IntegerType : type;
    }

    @Override
    public String description() {
      return switch (kind) {
        case BUCKET -> "bucket(numBuckets, column): the Iceberg bucket of a value";
        case TRUNCATE -> "truncate(width, column): a value truncated as Iceberg does";
        default -> name + "(column): " + name + " of a date or timestamp as Iceberg partitions by it";
      };
    }
  }
}
