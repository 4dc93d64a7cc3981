package org.icecomb.spark.read;

import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.TypeMark;
import org.icecomb.spark.convert.Uuids;

/** UUIDs as text for Spark, over the 16 bytes in files. */
final class UuidColumnVector extends WrappedColumnVector {

  private UuidColumnVector(ColumnVector bytes) {
    super(bytes, DataTypes.StringType);
  }

  /** The vector with its uuids as text: the vector itself if there are none. */
  static ColumnVector over(ColumnVector vector, StructField column) {
    return over(vector, column.dataType(), TypeMark.of(column));
  }

  private static ColumnVector over(ColumnVector vector, DataType type, TypeMark mark) {
    if (mark.isUuid()) {
      return new UuidColumnVector(vector);
    }
    if (type instanceof StructType struct) {
      ColumnVector[] children = new ColumnVector[struct.size()];
      boolean shown = false;
      for (int i = 0; i < children.length; i++) {
        children[i] = over(vector.getChild(i), struct.fields()[i]);
        shown |= children[i] != vector.getChild(i);
      }
      return shown ? new NestedColumnVector(vector, type, children) : vector;
    }
    if (type instanceof ArrayType array) {
      ColumnVector elements = over(vector.getChild(0), array.elementType(), mark.element());
      return elements == vector.getChild(0) ? vector : new NestedColumnVector(vector, type, elements);
    }
    if (type instanceof MapType map) {
      ColumnVector keys = over(vector.getChild(0), map.keyType(), mark.key());
      ColumnVector values = over(vector.getChild(1), map.valueType(), mark.value());
      return keys == vector.getChild(0) && values == vector.getChild(1)
          ? vector
          : new NestedColumnVector(vector, type, keys, values);
    }
    return vector;
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
}
