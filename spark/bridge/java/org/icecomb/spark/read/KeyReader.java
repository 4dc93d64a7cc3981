package org.icecomb.spark.read;

import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * A reader of the values that equality deletes compare, in the rows of a batch.
 *
 * <p>Values are equal if their objects are: null equals null, NaN equals NaN, and 0.0 does not
 * equal -0.0, as in Iceberg Java.
 */
final class KeyReader {

  private final List<Leaf> leaves;

  /** A field with its enclosing structs; any of them may be null. */
  private record Leaf(List<ColumnVector> chain, DataType type) {

    boolean isNull(int row) {
      for (ColumnVector vector : chain) {
        if (vector.isNullAt(row)) {
          return true;
        }
      }
      return false;
    }

    ColumnVector vector() {
      return chain.get(chain.size() - 1);
    }

    long number(int row) {
      return isLong() ? vector().getLong(row) : vector().getInt(row);
    }

    boolean isLong() {
      return type instanceof LongType || isMoment();
    }

    boolean isNumber() {
      return type instanceof IntegerType
          || type instanceof LongType
          || type instanceof DateType
          || isMoment();
    }

    private boolean isMoment() {
      return type instanceof TimestampType || type instanceof TimestampNTZType;
    }

    /**
     * @param kept whether the value outlives the batch
     */
    Object value(int row, boolean kept) {
      if (isNull(row)) {
        return null;
      }
      if (isNumber()) {
        return number(row);
      }
      if (type instanceof BooleanType) {
        return vector().getBoolean(row);
      }
      if (type instanceof FloatType) {
        return vector().getFloat(row);
      }
      if (type instanceof DoubleType) {
        return vector().getDouble(row);
      }
      if (type instanceof StringType) {
        UTF8String text = vector().getUTF8String(row);
        return kept ? text.clone() : text;
      }
      if (type instanceof BinaryType) {
        return ByteBuffer.wrap(vector().getBinary(row));
      }
      if (type instanceof DecimalType decimal) {
        BigDecimal value =
            vector().getDecimal(row, decimal.precision(), decimal.scale()).toJavaBigDecimal();
        return value.setScale(decimal.scale());
      }
      throw new UnsupportedOperationException(
          "equality deletes compare a column of type " + type.catalogString());
    }
  }

  /**
   * @param columns vectors from which {@code paths} lead to the values
   */
  KeyReader(List<ColumnVector> columns, List<List<Integer>> paths) {
    leaves = new ArrayList<>();
    for (List<Integer> path : paths) {
      List<ColumnVector> chain = new ArrayList<>();
      for (int place : path) {
        chain.add(
            chain.isEmpty()
                ? columns.get(place)
                : chain.get(chain.size() - 1).getChild(place));
      }
      if (chain.get(chain.size() - 1) instanceof WidenedColumnVector times && times.isCut()) {
        throw new UnsupportedOperationException(
            "equality deletes compare nanoseconds, and the file has microseconds or INT96\n"
                + "  hint: Read the table from Python, or convert the deletes there by"
                + " convert_equality_deletes");
      }
      leaves.add(new Leaf(chain, chain.get(chain.size() - 1).dataType()));
    }
  }

  /** Whether the key is one value stored as an integer. */
  boolean isNumber() {
    return leaves.size() == 1 && leaves.get(0).isNumber();
  }

  boolean isNull(int row) {
    return leaves.get(0).isNull(row);
  }

  long number(int row) {
    return leaves.get(0).number(row);
  }

  /** All numbers of a batch of {@code count} rows; null if some may be null or no number. */
  long[] numbers(int count) {
    Leaf leaf = leaves.get(0);
    if (!isNumber() || leaf.chain().size() > 1 || leaf.vector().hasNull()) {
      return null;
    }
    ColumnVector vector = leaf.vector();
    long[] numbers = new long[count];
    // One by one: a vector's getLongs ignores the dictionary that its values may be in.
    if (leaf.isLong()) {
      for (int i = 0; i < count; i++) {
        numbers[i] = vector.getLong(i);
      }
    } else {
      for (int i = 0; i < count; i++) {
        numbers[i] = vector.getInt(i);
      }
    }
    return numbers;
  }

  /**
   * The key of a row: a value, or a list of several.
   *
   * @param kept whether it outlives the batch
   */
  Object key(int row, boolean kept) {
    if (leaves.size() == 1) {
      return leaves.get(0).value(row, kept);
    }
    Object[] values = new Object[leaves.size()];
    for (int i = 0; i < values.length; i++) {
      values[i] = leaves.get(i).value(row, kept);
    }
    return Arrays.asList(values);
  }
}
