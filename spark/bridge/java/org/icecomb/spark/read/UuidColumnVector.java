package org.icecomb.spark.read;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Uuids;

/** UUIDs as the text that Spark shows, over the 16 bytes that files hold. */
final class UuidColumnVector extends WrappedColumnVector {

  private UuidColumnVector(ColumnVector bytes) {
    super(bytes, DataTypes.StringType);
  }

  /** The vector with its uuids as text: the vector itself where the column has none. */
  static ColumnVector over(ColumnVector vector, StructField column) {
    if (Schemas.isUuid(column)) {
      return new UuidColumnVector(vector);
    }
    if (!contains(column.dataType())) {
      return vector;
    }
    if (column.dataType() instanceof StructType struct) {
      return new Struct(vector, struct);
    }
    throw new UnsupportedOperationException(
        "column " + column.name() + " has uuids inside a list or map, which Spark cannot be shown yet");
  }

  private static boolean contains(DataType type) {
    if (type instanceof StructType struct) {
      for (StructField field : struct.fields()) {
        if (Schemas.isUuid(field) || contains(field.dataType())) {
          return true;
        }
      }
      return false;
    }
    if (type instanceof ArrayType array) {
      return contains(array.elementType());
    }
    return type instanceof MapType map && (contains(map.keyType()) || contains(map.valueType()));
  }

  @Override
  public UTF8String getUTF8String(int row) {
    return isNullAt(row) ? null : UTF8String.fromString(Uuids.text(vector.getBinary(row)));
  }

  @Override
  public byte[] getBinary(int row) {
    UTF8String text = getUTF8String(row);
    return text == null ? null : text.getBytes();
  }

  /** A struct that has uuids among its fields. */
  private static final class Struct extends WrappedColumnVector {

    private final ColumnVector[] children;

    Struct(ColumnVector vector, StructType type) {
      super(vector, type);
      children = new ColumnVector[type.size()];
      for (int i = 0; i < children.length; i++) {
        children[i] = over(vector.getChild(i), type.fields()[i]);
      }
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      return children[ordinal];
    }
  }
}
