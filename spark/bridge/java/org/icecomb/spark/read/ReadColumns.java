package org.icecomb.spark.read;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.icecomb.spark.convert.Schemas;

/**
 * The columns to read, plus those that deletes compare.
 *
 * <p>Each column, and each field inside one, is read once: fields are matched by id, and additional
 * ones come last at every depth, so that the indices of requested ones do not change.
 */
final class ReadColumns {

  private ReadColumns() {}

  /** The columns plus missing ones of the others, at every depth. */
  static StructType widened(StructType columns, StructType others) {
    List<StructField> fields = new ArrayList<>(List.of(columns.fields()));
    for (StructField other : others.fields()) {
      int place = place(fields, Schemas.id(other));
      if (place < 0) {
        // A dropped column may have the name of an existing one.
        fields.add(named(other, "__icecomb_key_" + Schemas.id(other), other.dataType()));
      } else if (fields.get(place).dataType() instanceof StructType inner
          && other.dataType() instanceof StructType more) {
        StructField field = fields.get(place);
        fields.set(place, named(field, field.name(), widened(inner, more)));
      }
    }
    return Schemas.struct(fields);
  }

  private static StructField named(StructField field, String name, DataType type) {
    Metadata metadata = field.metadata();
    return new StructField(name, type, field.nullable(), metadata);
  }

  private static int place(List<StructField> fields, int id) {
    for (int i = 0; i < fields.size(); i++) {
      if (Schemas.id(fields.get(i)) == id) {
        return i;
      }
    }
    return -1;
  }

  /** The indices that lead to the field of an id, from the outermost struct inwards. */
  static List<Integer> path(StructType columns, int id) {
    for (int i = 0; i < columns.size(); i++) {
      StructField field = columns.fields()[i];
      if (Schemas.id(field) == id) {
        return List.of(i);
      }
      if (field.dataType() instanceof StructType inner) {
        List<Integer> rest = path(inner, id);
        if (rest != null) {
          List<Integer> path = new ArrayList<>(List.of(i));
          path.addAll(rest);
          return path;
        }
      }
    }
    return null;
  }

  /** The vector with the requested type: without the additional fields. */
  static ColumnVector narrowed(ColumnVector vector, DataType asked) {
    return asked instanceof StructType struct && !sameSize(struct, vector.dataType())
        ? new Narrowed(vector, struct)
        : vector;
  }

  private static boolean sameSize(StructType asked, DataType read) {
    StructType struct = (StructType) read;
    if (struct.size() != asked.size()) {
      return false;
    }
    for (int i = 0; i < asked.size(); i++) {
      if (asked.fields()[i].dataType() instanceof StructType inner
          && !sameSize(inner, struct.fields()[i].dataType())) {
        return false;
      }
    }
    return true;
  }

  private static final class Narrowed extends WrappedColumnVector {

    private final ColumnVector[] children;

    Narrowed(ColumnVector vector, StructType type) {
      super(vector, type);
      children = new ColumnVector[type.size()];
      for (int i = 0; i < children.length; i++) {
        children[i] = narrowed(vector.getChild(i), type.fields()[i].dataType());
      }
    }

    @Override
    public ColumnVector getChild(int ordinal) {
      return children[ordinal];
    }
  }
}
