package org.icecomb.spark.functions;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.NullType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.functions.PartitionTransform.Kind;

/**
 * The partition transforms as SQL functions: {@code years, months, days, hours, bucket, truncate}.
 *
 * <p>Spark calls them to cluster and sort rows before a write, and users may: {@code SELECT
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

  private record Unbound(String name, Kind kind) implements UnboundFunction {

    @Override
    public BoundFunction bind(StructType inputs) {
      StructField[] fields = inputs.fields();
      boolean hasParameter = kind == Kind.BUCKET || kind == Kind.TRUNCATE;
      if (fields.length != (hasParameter ? 2 : 1)) {
        throw new UnsupportedOperationException(description());
      }
      if (hasParameter && !(fields[0].dataType() instanceof IntegerType)) {
        throw new UnsupportedOperationException(name + ": the first argument must be an int literal");
      }
      DataType source = widened(fields[fields.length - 1].dataType());
      // The parameter is known only from the rows; 1 stands for it while types are checked.
      new PartitionTransform(kind, 1, source);
      return new Bound(name, kind, hasParameter, source);
    }

    /** Iceberg has no tinyint and smallint; a bare NULL may be of any type. */
    private static DataType widened(DataType type) {
      if (type.equals(DataTypes.ByteType) || type.equals(DataTypes.ShortType)) {
        return DataTypes.IntegerType;
      }
      return type instanceof NullType ? DataTypes.TimestampType : type;
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

  /** A function on values of one type; the transform is made anew only when the parameter changes. */
  private static final class Bound implements ScalarFunction<Object> {

    private final String name;
    private final Kind kind;
    private final boolean hasParameter;
    private final DataType source;
    private transient PartitionTransform transform;

    Bound(String name, Kind kind, boolean hasParameter, DataType source) {
      this.name = name;
      this.kind = kind;
      this.hasParameter = hasParameter;
      this.source = source;
    }

    @Override
    public DataType[] inputTypes() {
      return hasParameter
          ? new DataType[] {DataTypes.IntegerType, source}
          : new DataType[] {source};
    }

    @Override
    public DataType resultType() {
      return new PartitionTransform(kind, 1, source).resultType();
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public String canonicalName() {
      return "icecomb." + name + "(" + source.catalogString() + ")";
    }

    @Override
    public Object produceResult(InternalRow input) {
      int last = hasParameter ? 1 : 0;
      if (input.isNullAt(last) || input.isNullAt(0)) {
        return null;
      }
      int parameter = hasParameter ? input.getInt(0) : 0;
      PartitionTransform current = transform;
      if (current == null || current.parameter() != parameter) {
        current = new PartitionTransform(kind, parameter, source);
        transform = current;
      }
      return current.apply(input.get(last, source));
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof Bound bound && bound.canonicalName().equals(canonicalName());
    }

    @Override
    public int hashCode() {
      return canonicalName().hashCode();
    }
  }
}
