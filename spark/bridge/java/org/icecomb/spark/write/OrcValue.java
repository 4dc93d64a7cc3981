package org.icecomb.spark.write;

import java.util.List;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.orc.TypeDescription;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.FixedLength;
import org.icecomb.spark.convert.TypeMark;

/** A writer of Spark's values of one type to ORC's vectors. */
interface OrcValue {

  /** The first time in microseconds that ORC cannot distinguish from one after 1970. */
  long FIRST_LOST = -999_000;

  /** Puts a non-null value. */
  void set(ColumnVector to, int place, SpecializedGetters from, int ordinal);

  /** Puts a value. */
  default void put(ColumnVector to, int place, SpecializedGetters from, int ordinal) {
    if (from.isNullAt(ordinal)) {
      to.noNulls = false;
      to.isNull[place] = true;
    } else {
      to.isNull[place] = false;
      set(to, place, from, ordinal);
    }
  }

  /**
   * The fields of a struct or row.
   *
   * @param file ORC's type
   * @param schema Spark's type
   */
  static OrcValue[] fields(TypeDescription file, StructType schema) {
    OrcValue[] values = new OrcValue[schema.size()];
    for (int i = 0; i < values.length; i++) {
      StructField field = schema.fields()[i];
      values[i] = of(file.getChildren().get(i), field.dataType(), TypeMark.of(field));
    }
    return values;
  }

  private static OrcValue of(TypeDescription file, DataType spark, TypeMark mark) {
    FixedLength fixed = FixedLength.of(mark);
    return switch (file.getCategory()) {
      case BOOLEAN ->
          (to, place, from, ordinal) ->
              ((LongColumnVector) to).vector[place] = from.getBoolean(ordinal) ? 1 : 0;
      case INT, DATE ->
          (to, place, from, ordinal) ->
              ((LongColumnVector) to).vector[place] = from.getInt(ordinal);
      case LONG ->
          (to, place, from, ordinal) ->
              ((LongColumnVector) to).vector[place] = from.getLong(ordinal);
      case FLOAT ->
          (to, place, from, ordinal) ->
              ((DoubleColumnVector) to).vector[place] = from.getFloat(ordinal);
      case DOUBLE ->
          (to, place, from, ordinal) ->
              ((DoubleColumnVector) to).vector[place] = from.getDouble(ordinal);
      case TIMESTAMP, TIMESTAMP_INSTANT ->
          (to, place, from, ordinal) ->
              moment((TimestampColumnVector) to, place, from.getLong(ordinal), mark.name());
      case DECIMAL -> decimal(file.getPrecision(), file.getScale());
      case STRING, BINARY ->
          (to, place, from, ordinal) -> {
            byte[] bytes =
                fixed != null
                    ? fixed.bytes(from, ordinal)
                    : file.getCategory() == TypeDescription.Category.STRING
                        ? from.getUTF8String(ordinal).getBytes()
                        : from.getBinary(ordinal);
            ((BytesColumnVector) to).setVal(place, bytes, 0, bytes.length);
          };
      case STRUCT -> struct(fields(file, (StructType) spark));
      case LIST ->
          list(
              of(file.getChildren().get(0), ((ArrayType) spark).elementType(), mark.element()));
      case MAP -> {
        List<TypeDescription> parts = file.getChildren();
        MapType map = (MapType) spark;
        yield map(
            of(parts.get(0), map.keyType(), mark.key()),
            of(parts.get(1), map.valueType(), mark.value()));
      }
      default -> throw new IllegalArgumentException("No values of ORC's type " + file);
    };
  }

  private static void moment(TimestampColumnVector to, int place, long micros, String name) {
    // ORC stores whole seconds, rounded towards 1970, and non-negative fractions of a second: times
    // less than a second before 1970 would be read as after it.
    if (micros < 0 && micros >= FIRST_LOST) {
      throw new UnsupportedOperationException(
          "Column " + name + ": ORC cannot store a time " + -micros + " microseconds before 1970\n"
              + "  hint: Round it to seconds, or write Parquet.");
    }
    to.time[place] = Math.floorDiv(micros, 1_000L);
    to.nanos[place] = Math.floorMod(micros, 1_000_000) * 1_000;
  }

  private static OrcValue decimal(int precision, int scale) {
    if (precision <= Decimal.MAX_LONG_DIGITS()) {
      return (to, place, from, ordinal) ->
          ((DecimalColumnVector) to)
              .vector[place]
              .setFromLongAndScale(
                  from.getDecimal(ordinal, precision, scale).toUnscaledLong(), scale);
    }
    return (to, place, from, ordinal) ->
        ((DecimalColumnVector) to)
            .vector[place]
            .set(
                HiveDecimal.create(
                    from.getDecimal(ordinal, precision, scale).toJavaBigDecimal()));
  }

  private static OrcValue struct(OrcValue[] fields) {
    return (to, place, from, ordinal) -> {
      InternalRow struct = from.getStruct(ordinal, fields.length);
      ColumnVector[] vectors = ((StructColumnVector) to).fields;
      for (int i = 0; i < fields.length; i++) {
        fields[i].put(vectors[i], place, struct, i);
      }
    };
  }

  private static OrcValue list(OrcValue element) {
    return (to, place, from, ordinal) -> {
      ListColumnVector lists = (ListColumnVector) to;
      ArrayData elements = from.getArray(ordinal);
      int count = elements.numElements();
      int first = lists.childCount;
      lists.offsets[place] = first;
      lists.lengths[place] = count;
      lists.childCount = first + count;
      grow(lists.child, lists.childCount);
      for (int i = 0; i < count; i++) {
        element.put(lists.child, first + i, elements, i);
      }
    };
  }

  private static OrcValue map(OrcValue key, OrcValue value) {
    return (to, place, from, ordinal) -> {
      MapColumnVector maps = (MapColumnVector) to;
      MapData entries = from.getMap(ordinal);
      ArrayData keys = entries.keyArray();
      ArrayData values = entries.valueArray();
      int count = entries.numElements();
      int first = maps.childCount;
      maps.offsets[place] = first;
      maps.lengths[place] = count;
      maps.childCount = first + count;
      grow(maps.keys, maps.childCount);
      grow(maps.values, maps.childCount);
      for (int i = 0; i < count; i++) {
        key.put(maps.keys, first + i, keys, i);
        value.put(maps.values, first + i, values, i);
      }
    };
  }

  /** Doubles the capacity, as otherwise long lists would be copied for each row. */
  private static void grow(ColumnVector vector, int size) {
    if (vector.isNull.length < size) {
      vector.ensureSize(Math.multiplyExact(size, 2), true);
    }
  }
}
