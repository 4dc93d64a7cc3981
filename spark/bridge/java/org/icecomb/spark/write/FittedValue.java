package org.icecomb.spark.write;

import java.io.Serializable;
import java.util.Arrays;
import java.util.Locale;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayBasedMapData;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.SparkErrors;

/** Conversion of a query's value to one of a table's column, at every depth. */
interface FittedValue extends Serializable {

  /** Converts a non-null value; the result may share the query's memory. */
  Object of(SpecializedGetters from, int ordinal);

  /** Whether no conversion is needed. */
  default boolean isIdentity() {
    return false;
  }

  /** A value of the table's type. */
  record Same(DataType type) implements FittedValue {

    @Override
    public Object of(SpecializedGetters from, int ordinal) {
      return from.get(ordinal, type);
    }

    @Override
    public boolean isIdentity() {
      return true;
    }
  }

  /**
   * A value that may be null.
   *
   * @param required the name of the column if it is required, or null
   */
  record Nullable(FittedValue value, String required) implements FittedValue {

    @Override
    public Object of(SpecializedGetters from, int ordinal) {
      if (!from.isNullAt(ordinal)) {
        return value.of(from, ordinal);
      }
      if (required != null) {
        throw new IllegalArgumentException(
            "A row of the query has null for column " + required + ", which must have a value");
      }
      return null;
    }

    @Override
    public boolean isIdentity() {
      return required == null && value.isIdentity();
    }
  }

  /**
   * The fields of a struct or row.
   *
   * @param places the index of each of the table's fields in the query, or -1
   * @param given the number of the query's fields
   */
  record Struct(FittedValue[] fields, int[] places, int given) implements FittedValue {

    boolean lacks(int field) {
      return places[field] < 0;
    }

    @Override
    public Object of(SpecializedGetters from, int ordinal) {
      return of(from.getStruct(ordinal, given));
    }

    InternalRow of(InternalRow struct) {
      Object[] values = new Object[fields.length];
      for (int i = 0; i < fields.length; i++) {
        values[i] = places[i] < 0 ? null : fields[i].of(struct, places[i]);
      }
      return new GenericInternalRow(values);
    }

    @Override
    public boolean isIdentity() {
      boolean same = given == fields.length;
      for (int i = 0; same && i < fields.length; i++) {
        same = places[i] == i && fields[i].isIdentity();
      }
      return same;
    }
  }

  /** The elements of a list. */
  record Elements(FittedValue element) implements FittedValue {

    @Override
    public Object of(SpecializedGetters from, int ordinal) {
      return all(from.getArray(ordinal));
    }

    ArrayData all(ArrayData elements) {
      Object[] values = new Object[elements.numElements()];
      for (int i = 0; i < values.length; i++) {
        values[i] = element.of(elements, i);
      }
      return new GenericArrayData(values);
    }
  }

  /** The keys and values of a map. */
  record Entries(Elements keys, Elements values) implements FittedValue {

    @Override
    public Object of(SpecializedGetters from, int ordinal) {
      MapData map = from.getMap(ordinal);
      return new ArrayBasedMapData(keys.all(map.keyArray()), values.all(map.valueArray()));
    }
  }

  /**
   * The conversion from a query's type to a column's.
   *
   * @param table the table's name, for messages
   * @param path the column's name, for messages
   */
  private static FittedValue value(
      String table, DataType given, DataType wanted, String path, boolean caseSensitive) {
    if (given instanceof StructType from && wanted instanceof StructType to) {
      Struct fields = struct(table, from, to, path + ".", caseSensitive);
      return fields.isIdentity() ? new Same(wanted) : fields;
    }
    if (given instanceof ArrayType from && wanted instanceof ArrayType to) {
      FittedValue element =
          nullable(
              value(
                  table, from.elementType(), to.elementType(), path + ".element", caseSensitive),
              from.containsNull(),
              to.containsNull(),
              path + ".element");
      return element.isIdentity() ? new Same(wanted) : new Elements(element);
    }
    if (given instanceof MapType from && wanted instanceof MapType to) {
      FittedValue key = value(table, from.keyType(), to.keyType(), path + ".key", caseSensitive);
      FittedValue element =
          nullable(
              value(table, from.valueType(), to.valueType(), path + ".value", caseSensitive),
              from.valueContainsNull(),
              to.valueContainsNull(),
              path + ".value");
      return key.isIdentity() && element.isIdentity()
          ? new Same(wanted)
          : new Entries(new Elements(key), new Elements(element));
    }
    FittedValue found = given.equals(wanted) ? new Same(wanted) : widened(given, wanted);
    if (found == null) {
      throw SparkErrors.unsupported(
          "Table %s: column %s is %s, the query gives %s"
              .formatted(table, path, wanted.sql(), given.sql()),
          "The query must give the table's types, or narrower ones: CAST(%s AS %s)."
              .formatted(path, wanted.sql()));
    }
    return found;
  }

  /** The conversion of a number to a wider type; null if the type is not wider. */
  private static FittedValue widened(DataType given, DataType wanted) {
    boolean small = given instanceof ByteType || given instanceof ShortType;
    if (small && wanted.equals(DataTypes.IntegerType)) {
      return (from, ordinal) -> ((Number) from.get(ordinal, given)).intValue();
    }
    if ((small || given instanceof IntegerType) && wanted.equals(DataTypes.LongType)) {
      return (from, ordinal) -> ((Number) from.get(ordinal, given)).longValue();
    }
    if (given.equals(DataTypes.FloatType) && wanted.equals(DataTypes.DoubleType)) {
      return (from, ordinal) -> (double) from.getFloat(ordinal);
    }
    if (given instanceof DecimalType narrow
        && wanted instanceof DecimalType wide
        && narrow.scale() == wide.scale()
        && narrow.precision() < wide.precision()) {
      return (from, ordinal) -> {
        Decimal value = from.getDecimal(ordinal, narrow.precision(), narrow.scale()).clone();
        value.changePrecision(wide.precision(), wide.scale());
        return value;
      };
    }
    return null;
  }

  private static FittedValue nullable(
      FittedValue value, boolean given, boolean wanted, String path) {
    return new Nullable(value, given && !wanted ? path : null);
  }

  /**
   * The conversion of structs, or rows, to a table's.
   *
   * @param table the table's name, for messages
   * @param prefix the prefix of field names in messages
   */
  static Struct struct(
      String table, StructType given, StructType wanted, String prefix, boolean caseSensitive) {
    int[] places = new int[wanted.size()];
    FittedValue[] fields = new FittedValue[wanted.size()];
    Arrays.fill(places, -1);
    for (int i = 0; i < given.size(); i++) {
      StructField field = given.fields()[i];
      int place = place(wanted, field.name(), caseSensitive);
      String path = prefix + field.name();
      if (place < 0 || places[place] >= 0) {
        throw SparkErrors.unsupported(
            "Table %s: the query gives a column %s %s"
                .formatted(table, path, place < 0 ? "that it does not have" : "twice"),
            "Select the table's columns: " + String.join(", ", wanted.fieldNames()));
      }
      StructField column = wanted.fields()[place];
      places[place] = i;
      fields[place] =
          nullable(
              value(table, field.dataType(), column.dataType(), path, caseSensitive),
              field.nullable(),
              column.nullable(),
              path);
    }
    for (int i = 0; i < places.length; i++) {
      StructField column = wanted.fields()[i];
      if (places[i] < 0 && !column.nullable()) {
        throw lacking(table, prefix + column.name());
      }
    }
    return new Struct(fields, places, given.size());
  }

  private static int place(StructType wanted, String name, boolean caseSensitive) {
    String[] names = wanted.fieldNames();
    int exact = Arrays.asList(names).indexOf(name);
    if (exact >= 0 || caseSensitive) {
      return exact;
    }
    String lower = name.toLowerCase(Locale.ROOT);
    for (int i = 0; i < names.length; i++) {
      if (names[i].toLowerCase(Locale.ROOT).equals(lower)) {
        return i;
      }
    }
    return -1;
  }

  /** The exception for a query without a required column. */
  static RuntimeException lacking(String table, String column) {
    return SparkErrors.unsupported(
        "Table " + table + ": the query does not give column " + column,
        "Only columns may be left out that may be null, and by which the table is neither "
            + "partitioned nor sorted.");
  }
}
