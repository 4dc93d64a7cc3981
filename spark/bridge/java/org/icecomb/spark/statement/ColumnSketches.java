package org.icecomb.spark.statement;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Base64;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.datasketches.memory.Memory;
import org.apache.datasketches.theta.SetOperation;
import org.apache.datasketches.theta.Sketches;
import org.apache.datasketches.theta.Union;
import org.apache.datasketches.theta.UpdateSketch;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.StringType;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.SessionSketches;

/**
 * Theta sketches of columns, made by executors of the rows of their tasks.
 *
 * <p>A task keeps at least as many of the least hashes as the planner does, so that what the planner
 * makes of all does not depend on how rows are divided among tasks.
 */
final class ColumnSketches {

  /** As many as Iceberg's own statistics have. */
  private static final int HASHES = 4096;

  private static final byte[][] NONE = {};

  private ColumnSketches() {}

  /** The sketch of each column, as JSON objects, see {@code SessionSketches}. */
  static Iterator<String> of(SparkSession spark, SessionSketches asked) {
    Column[] columns =
        asked.columns().stream().map(name -> column(name, asked.uuids())).toArray(Column[]::new);
    DataFrameReader reader = spark.read().options(asked.read());
    Dataset<Row> values =
        PlannedCalls.asWritten(spark, () -> reader.table(asked.table())).select(columns);
    DataType[] types =
        Arrays.stream(values.schema().fields()).map(field -> field.dataType()).toArray(DataType[]::new);
    byte[][] found =
        values
            .queryExecution()
            .toRdd()
            .toJavaRDD()
            .mapPartitions(rows -> Stream.<byte[][]>of(sketches(rows, types)).iterator())
            .treeAggregate(NONE, ColumnSketches::united, ColumnSketches::united);
    // a table without files has no task
    byte[][] told = found.length == 0 ? sketches(List.<InternalRow>of().iterator(), types) : found;
    return Arrays.stream(told)
        .map(each -> Json.object(Map.of("sketch", Base64.getEncoder().encodeToString(each))))
        .map(Json::text)
        .iterator();
  }

  /** Not an expression in SQL, in which a name would bring settings in for <code>${…}</code>. */
  private static Column column(String name, List<String> uuids) {
    Column column = functions.col(name);
    return uuids.contains(name)
        ? functions.unhex(functions.replace(column, functions.lit("-"), functions.lit("")))
        : column;
  }

  private static byte[][] sketches(Iterator<InternalRow> rows, DataType[] types) {
    UpdateSketch[] found = new UpdateSketch[types.length];
    ColumnBytes[] columns = new ColumnBytes[types.length];
    for (int at = 0; at < types.length; at++) {
      found[at] = UpdateSketch.builder().setNominalEntries(HASHES).build();
      columns[at] = bytes(types[at]);
    }
    while (rows.hasNext()) {
      InternalRow row = rows.next();
      for (int at = 0; at < types.length; at++) {
        if (!row.isNullAt(at)) {
          found[at].update(columns[at].of(row, at));
        }
      }
    }
    return Arrays.stream(found).map(each -> each.compact().toByteArray()).toArray(byte[][]::new);
  }

  private static byte[][] united(byte[][] left, byte[][] right) {
    if (left.length == 0 || right.length == 0) {
      return left.length == 0 ? right : left;
    }
    byte[][] found = new byte[left.length][];
    for (int at = 0; at < found.length; at++) {
      Union union = SetOperation.builder().setNominalEntries(HASHES).buildUnion();
      union.union(Sketches.wrapSketch(Memory.wrap(left[at])));
      union.union(Sketches.wrapSketch(Memory.wrap(right[at])));
      found[at] = union.getResult().toByteArray();
    }
    return found;
  }

  /** The bytes of a value that is not null, in the single-value serialization. */
  @FunctionalInterface
  private interface ColumnBytes {
    byte[] of(InternalRow row, int at);
  }

  private static ColumnBytes bytes(DataType type) {
    if (type instanceof BooleanType) {
      return (row, at) -> new byte[] {(byte) (row.getBoolean(at) ? 1 : 0)};
    }
    if (type instanceof IntegerType || type instanceof DateType) {
      return (row, at) -> bytes(4).putInt(0, row.getInt(at)).array();
    }
    if (type instanceof FloatType) {
      return (row, at) -> bytes(4).putFloat(0, row.getFloat(at)).array();
    }
    if (type instanceof DoubleType) {
      return (row, at) -> bytes(8).putDouble(0, row.getDouble(at)).array();
    }
    if (type instanceof StringType) {
      return (row, at) -> row.getUTF8String(at).getBytes();
    }
    if (type instanceof BinaryType) {
      return InternalRow::getBinary;
    }
    if (type instanceof DecimalType decimal) {
      int precision = decimal.precision();
      int scale = decimal.scale();
      return (row, at) ->
          row.getDecimal(at, precision, scale).toJavaBigDecimal().unscaledValue().toByteArray();
    }
    // longs, and both kinds of timestamps
    return (row, at) -> bytes(8).putLong(0, row.getLong(at)).array();
  }

  private static ByteBuffer bytes(int length) {
    return ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
  }
}
