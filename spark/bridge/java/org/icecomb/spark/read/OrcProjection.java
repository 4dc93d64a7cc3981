package org.icecomb.spark.read;

import java.util.List;
import java.util.function.IntSupplier;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.orc.TypeDescription;
import org.apache.orc.TypeDescription.Category;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.apache.spark.sql.types.TimestampType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.TypeMark;

/**
 * A table's columns in one ORC file, found by field id: the types to read and the vectors over them.
 *
 * <p>Field ids are in the attribute {@code iceberg.id} of types (Iceberg's specification, ORC). The
 * element of a list, the key and the value of a map are found by their position.
 */
final class OrcProjection implements Condition.FileColumns {

  private static final String ID = "iceberg.id";

  private final FileRequest request;
  private final TypeDescription file;
  private final NameMapping mapping;

  OrcProjection(TypeDescription file, FileRequest request) {
    this.file = file;
    this.request = request;
    boolean named = !hasIds(file);
    this.mapping = named ? request.mapping() : null;
    if (named && mapping == null && !file.getChildren().isEmpty()) {
      throw request.withoutIds();
    }
    List<String> names = file.getFieldNames();
    if (!names.isEmpty() && names.stream().allMatch(name -> name.matches("_col\\d+"))) {
      throw new UnsupportedOperationException(
          "its columns have numbers for names (_col0, ...)\n"
              + "  hint: Hive before version 2 wrote such files; rewrite them with a later one.");
    }
  }

  private static boolean hasIds(TypeDescription type) {
    List<TypeDescription> children = type.getChildren();
    return type.getAttributeValue(ID) != null
        || children != null && children.stream().anyMatch(OrcProjection::hasIds);
  }

  /** The schema to read: the file's own types, without unread fields. */
  TypeDescription schema() {
    return pruned(file, request.columns(), mapping);
  }

  /** The vectors of the requested columns over those of a batch of {@link #schema}. */
  ColumnVector[] vectors(
      org.apache.hadoop.hive.ql.exec.vector.ColumnVector[] batch, IntSupplier size) {
    return fields(file, request.columns(), mapping, batch, size, false);
  }

  /** ORC's statistics are never used for floating-point numbers. */
  @Override
  public boolean boundsKnowNaN() {
    return false;
  }

  /** Columns of the types for which ORC's statistics are used. */
  @Override
  public String physicalName(String[] path, DataType literalType) {
    if (path.length != 1 || request.columns().getFieldIndex(path[0]).isEmpty()) {
      return null;
    }
    StructField column = request.columns().apply(path[0]);
    if (literalType != null && TypeMark.of(column).isNanoseconds()) {
      return null;
    }
    int wanted = Schemas.id(column);
    for (int i = 0; i < file.getChildren().size(); i++) {
      String name = file.getFieldNames().get(i);
      if (id(file, i, mapping) == wanted && name.matches("[a-zA-Z_][a-zA-Z0-9_]*")) {
        boolean comparable =
            switch (file.getChildren().get(i).getCategory()) {
              case BYTE, SHORT, INT, LONG ->
                  literalType == null
                      || literalType instanceof IntegerType
                      || literalType instanceof LongType;
              case STRING -> literalType == null || literalType instanceof StringType;
              case DATE -> literalType == null || literalType instanceof DateType;
              case DECIMAL -> literalType == null || literalType instanceof DecimalType;
              // A file without ids is from Hive, with nanoseconds that are not read, and in the
              // writer's zone, whose rules may have changed since.
              case TIMESTAMP, TIMESTAMP_INSTANT ->
                  mapping == null
                      && (literalType == null
                          || literalType instanceof TimestampType
                          || literalType instanceof TimestampNTZType);
              default -> false;
            };
        return comparable ? name : null;
      }
    }
    return null;
  }

  @Override
  public Object literal(Object value, DataType type) {
    return OrcConditions.literal(value, type);
  }

  private static TypeDescription pruned(
      TypeDescription type, DataType wanted, NameMapping mapping) {
    TypeDescription read =
        switch (type.getCategory()) {
          case STRUCT -> {
            TypeDescription struct = TypeDescription.createStruct();
            if (wanted instanceof StructType asked) {
              for (int i = 0; i < type.getChildren().size(); i++) {
                String name = type.getFieldNames().get(i);
                StructField field = wanted(asked, id(type, i, mapping));
                if (field != null) {
                  struct.addField(
                      name,
                      pruned(type.getChildren().get(i), field.dataType(), inside(mapping, name)));
                }
              }
            }
            yield struct;
          }
          case LIST ->
              wanted instanceof ArrayType asked
                  ? TypeDescription.createList(
                      pruned(
                          type.getChildren().get(0),
                          asked.elementType(),
                          inside(mapping, "element")))
                  : type.clone();
          case MAP ->
              wanted instanceof MapType asked
                  ? TypeDescription.createMap(
                      pruned(type.getChildren().get(0), asked.keyType(), inside(mapping, "key")),
                      pruned(
                          type.getChildren().get(1), asked.valueType(), inside(mapping, "value")))
                  : type.clone();
          default -> type.clone();
        };
    return read;
  }

  private static ColumnVector[] fields(
      TypeDescription type,
      StructType wanted,
      NameMapping mapping,
      org.apache.hadoop.hive.ql.exec.vector.ColumnVector[] sources,
      IntSupplier size,
      boolean inside) {
    ColumnVector[] vectors = new ColumnVector[wanted.size()];
    int next = 0;
    for (int i = 0; i < type.getChildren().size(); i++) {
      int id = id(type, i, mapping);
      StructField field = wanted(wanted, id);
      if (field != null) {
        vectors[Schemas.place(wanted, id)] =
            vector(
                type.getChildren().get(i),
                field.dataType(),
                TypeMark.of(field),
                inside(mapping, type.getFieldNames().get(i)),
                sources[next++],
                size,
                field.name());
      }
    }
    for (int i = 0; inside && i < vectors.length; i++) {
      if (vectors[i] == null) {
        vectors[i] = InitialDefaults.vector(wanted.fields()[i]);
      }
    }
    return vectors;
  }

  private static ColumnVector vector(
      TypeDescription type,
      DataType wanted,
      TypeMark mark,
      NameMapping mapping,
      org.apache.hadoop.hive.ql.exec.vector.ColumnVector source,
      IntSupplier size,
      String name) {
    if (!(mark.isNanoseconds() ? isTime(type) : isReadAs(type, wanted))) {
      throw new UnsupportedOperationException(
          "column " + name + " is " + type + " in the file and " + wanted.catalogString()
              + " in the table\n"
              + "  hint: The file was not written for this column; check field ids and name mapping.");
    }
    if (wanted instanceof StructType struct) {
      StructColumnVector structs = (StructColumnVector) source;
      return new OrcVector.Structs(
          struct, source, fields(type, struct, mapping, structs.fields, size, true), size);
    }
    if (wanted instanceof ArrayType array) {
      ListColumnVector lists = (ListColumnVector) source;
      ColumnVector elements =
          vector(
              type.getChildren().get(0),
              array.elementType(),
              mark.element(),
              inside(mapping, "element"),
              lists.child,
              () -> lists.childCount,
              name + ".element");
      return new OrcVector.Lists(array, lists, elements, size);
    }
    if (wanted instanceof MapType map) {
      MapColumnVector maps = (MapColumnVector) source;
      ColumnVector keys =
          vector(
              type.getChildren().get(0),
              map.keyType(),
              mark.key(),
              inside(mapping, "key"),
              maps.keys,
              () -> maps.childCount,
              name + ".key");
      ColumnVector values =
          vector(
              type.getChildren().get(1),
              map.valueType(),
              mark.value(),
              inside(mapping, "value"),
              maps.values,
              () -> maps.childCount,
              name + ".value");
      return new OrcVector.Maps(map, maps, keys, values, size);
    }
    if (source instanceof LongColumnVector longs) {
      if (mark.isNanoseconds()) {
        ColumnVector days = new OrcVector.Longs(DataTypes.DateType, longs, size);
        return WidenedColumnVector.over(days, DataTypes.DateType, wanted);
      }
      return wanted instanceof TimestampNTZType
          ? new OrcVector.Midnights(wanted, longs, size)
          : new OrcVector.Longs(wanted, longs, size);
    }
    if (source instanceof DoubleColumnVector doubles) {
      return new OrcVector.Doubles(wanted, doubles, size);
    }
    if (source instanceof DecimalColumnVector decimals) {
      return new OrcVector.Decimals(wanted, decimals, size);
    }
    if (source instanceof TimestampColumnVector timestamps) {
      return mark.isNanoseconds()
          ? new OrcVector.FineTimestamps(wanted, timestamps, size)
          : new OrcVector.Timestamps(wanted, timestamps, size);
    }
    BytesColumnVector bytes = (BytesColumnVector) source;
    return mark.isUuid()
        ? new OrcVector.UuidTexts(wanted, bytes, size)
        : new OrcVector.Bytes(wanted, bytes, size);
  }

  private static boolean isTime(TypeDescription file) {
    return switch (file.getCategory()) {
      case DATE, TIMESTAMP, TIMESTAMP_INSTANT -> true;
      default -> false;
    };
  }

  /** Whether the file's type can be read as the table's, possibly by a promotion. */
  private static boolean isReadAs(TypeDescription file, DataType wanted) {
    Category category = file.getCategory();
    return switch (category) {
      case BOOLEAN -> wanted instanceof BooleanType;
      case BYTE, SHORT, INT -> wanted instanceof IntegerType || wanted instanceof LongType;
      case LONG -> wanted instanceof LongType;
      case FLOAT -> wanted instanceof FloatType || wanted instanceof DoubleType;
      case DOUBLE -> wanted instanceof DoubleType;
      case DATE -> wanted instanceof DateType || wanted instanceof TimestampNTZType;
      case TIMESTAMP, TIMESTAMP_INSTANT ->
          wanted instanceof TimestampType || wanted instanceof TimestampNTZType;
      case STRING, CHAR, VARCHAR, BINARY ->
          wanted instanceof StringType || wanted instanceof BinaryType;
      case DECIMAL ->
          wanted instanceof DecimalType decimal
              && decimal.scale() == file.getScale()
              && decimal.precision() >= file.getPrecision();
      case STRUCT -> wanted instanceof StructType;
      case LIST -> wanted instanceof ArrayType;
      case MAP -> wanted instanceof MapType;
      default -> false;
    };
  }

  private static int id(TypeDescription struct, int place, NameMapping mapping) {
    if (mapping != null) {
      return mapping.id(struct.getFieldNames().get(place));
    }
    String id = struct.getChildren().get(place).getAttributeValue(ID);
    return id == null ? -1 : Integer.parseInt(id);
  }

  private static StructField wanted(StructType struct, int id) {
    int place = Schemas.place(struct, id);
    return place < 0 ? null : struct.fields()[place];
  }

  private static NameMapping inside(NameMapping mapping, String name) {
    return mapping == null ? null : mapping.inside(name);
  }
}
