package org.icecomb.spark.read;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.apache.parquet.hadoop.metadata.FileMetaData;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DateLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.StringLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimeUnit;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Type.Repetition;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.types.TimestampNTZType;
import org.icecomb.spark.SparkVersion;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.TypeMark;

/**
 * A table's columns in one Parquet file, found by field id, never by their current names.
 *
 * <p>Spark's reader matches columns and pushed filters by name; its own field-id mode still pushes
 * filters by name. So the columns to read are renamed, at every depth, to the names of their ids in
 * this file; a field that the file does not have gets a name that the file does not have.
 */
final class FileSchema implements Condition.FileColumns {

  private static final String MISSING = "__icecomb_missing_";

  /** Versions of Parquet Java that omit bounds if there is a NaN (PARQUET-1246). */
  private static final Pattern KNOWS_NAN = Pattern.compile("parquet-mr version 1\\.[1-9][0-9].*");

  private final MessageType file;
  private final String writer;
  private final StructType columns;
  private final NameMapping mapping;
  private final Set<Integer> defaulted = new HashSet<>();
  private boolean asLongs;

  FileSchema(FileMetaData footer, FileRequest request) {
    this.file = footer.getSchema();
    this.writer = footer.getCreatedBy();
    this.columns = request.columns();
    this.mapping = hasIds(file) ? null : request.mapping();
    if (this.mapping == null && !hasIds(file) && file.getFieldCount() > 0) {
      throw request.withoutIds();
    }
  }

  @Override
  public boolean boundsKnowNaN() {
    return writer != null && KNOWS_NAN.matcher(writer).matches();
  }

  static boolean hasIds(Type type) {
    if (type.getId() != null) {
      return true;
    }
    return !type.isPrimitive() && type.asGroupType().getFields().stream().anyMatch(FileSchema::hasIds);
  }

  /** The column with this file's names, or null if it has no such column. */
  StructField physical(StructField column) {
    Type found = find(file, mapping, column);
    return found == null ? null : renamed(column, found, mapping);
  }

  /** The ids of missing fields inside {@link #physical} columns that have an initial default. */
  Set<Integer> defaulted() {
    return defaulted;
  }

  /**
   * Whether Spark is to read nanoseconds as longs: {@link #physical} columns have some, or are
   * structs of which it reads any field to tell where they are null.
   */
  boolean readsNanosAsLongs() {
    return asLongs;
  }

  private static Type find(GroupType group, NameMapping mapping, StructField wanted) {
    int id = Schemas.id(wanted);
    for (Type field : group.getFields()) {
      int fieldId =
          mapping != null
              ? mapping.id(field.getName())
              : field.getId() == null ? -1 : field.getId().intValue();
      if (fieldId == id && id >= 0) {
        return field;
      }
    }
    return null;
  }

  private StructField renamed(StructField wanted, Type found, NameMapping mapping) {
    DataType type =
        renamed(wanted.dataType(), TypeMark.of(wanted), found, inside(mapping, found.getName()));
    // Nullable, because a file may lack what the table now requires; without metadata, to drop ids.
    return DataTypes.createStructField(found.getName(), type, true);
  }

  private DataType renamed(
      DataType wanted, TypeMark mark, Type found, NameMapping mapping) {
    if (mark.isUuid()) {
      return DataTypes.BinaryType;
    }
    if (found.isPrimitive() && mark.isNanoseconds()) {
      return time(found.asPrimitiveType());
    }
    if (found.isPrimitive()) {
      return SparkVersion.widensColumns() ? wanted : stored(found.asPrimitiveType(), wanted);
    }
    GroupType group = found.asGroupType();
    if (wanted instanceof StructType struct) {
      List<StructField> fields = new ArrayList<>();
      boolean anyFound = false;
      for (StructField field : struct.fields()) {
        Type child = find(group, mapping, field);
        anyFound |= child != null;
        if (child == null && InitialDefaults.has(field)) {
          defaulted.add(Schemas.id(field));
        }
        fields.add(
            child == null
                ? DataTypes.createStructField(MISSING + Schemas.id(field), field.dataType(), true)
                : renamed(field, child, mapping));
      }
      asLongs |= !anyFound;
      if (!anyFound
          && !ParquetFile.TELLS_NULL_STRUCTS
          && Arrays.stream(struct.fields()).anyMatch(InitialDefaults::has)) {
        fields.add(witness(group, found.getName()));
      }
      return Schemas.struct(fields);
    }
    if (wanted instanceof ArrayType array) {
      DataType element =
          renamed(
              array.elementType(), mark.element(), element(group), inside(mapping, "element"));
      return new ArrayType(element, true);
    }
    if (wanted instanceof MapType map) {
      GroupType entry = group.getType(0).asGroupType();
      return new MapType(
          renamed(map.keyType(), mark.key(), entry.getType(0), inside(mapping, "key")),
          renamed(map.valueType(), mark.value(), entry.getType(1), inside(mapping, "value")),
          true);
    }
    return wanted;
  }

  /**
   * A field that tells where a struct is null: Spark's reader takes it for null everywhere if the
   * file has none of the fields that are read. It comes behind these.
   */
  private static StructField witness(GroupType group, String name) {
    for (Type field : group.getFields()) {
      DataType type = field.isPrimitive() ? plain(field.asPrimitiveType()) : null;
      if (type != null) {
        return DataTypes.createStructField(field.getName(), type, true);
      }
    }
    throw new UnsupportedOperationException(
        "this version of Spark cannot tell where the struct " + name
            + " is null: of the fields that are read, the file has none, and one has a default\n"
            + "  hint: Select another field of it, too, or use Spark 4.1 or later.");
  }

  /** Spark's type of a column; null if its annotation means more than a plain value. */
  private static DataType plain(PrimitiveType column) {
    LogicalTypeAnnotation meaning = column.getLogicalTypeAnnotation();
    if (meaning instanceof StringLogicalTypeAnnotation) {
      return DataTypes.StringType;
    }
    if (meaning != null || column.isRepetition(Repetition.REPEATED)) {
      return null;
    }
    return switch (column.getPrimitiveTypeName()) {
      case BOOLEAN -> DataTypes.BooleanType;
      case INT32 -> DataTypes.IntegerType;
      case INT64 -> DataTypes.LongType;
      case FLOAT -> DataTypes.FloatType;
      case DOUBLE -> DataTypes.DoubleType;
      case BINARY -> DataTypes.BinaryType;
      default -> null;
    };
  }

  /** The type in the file of a column of nanoseconds: longs, if not of an older or foreign file. */
  private DataType time(PrimitiveType found) {
    LogicalTypeAnnotation meaning = found.getLogicalTypeAnnotation();
    if (meaning instanceof DateLogicalTypeAnnotation) {
      return DataTypes.DateType;
    }
    if (meaning instanceof TimestampLogicalTypeAnnotation time && time.getUnit() != TimeUnit.NANOS) {
      return time.isAdjustedToUTC() ? DataTypes.TimestampType : DataTypes.TimestampNTZType;
    }
    if (found.getPrimitiveTypeName() == PrimitiveTypeName.INT96) {
      return DataTypes.TimestampType;
    }
    asLongs = true;
    return DataTypes.LongType;
  }

  /** The narrower type in the file, if the column was widened since. */
  private static DataType stored(PrimitiveType found, DataType wanted) {
    if (wanted instanceof LongType && found.getPrimitiveTypeName() == PrimitiveTypeName.INT32) {
      return DataTypes.IntegerType;
    }
    if (wanted instanceof DoubleType && found.getPrimitiveTypeName() == PrimitiveTypeName.FLOAT) {
      return DataTypes.FloatType;
    }
    if (wanted instanceof TimestampNTZType
        && found.getLogicalTypeAnnotation() instanceof DateLogicalTypeAnnotation) {
      return DataTypes.DateType;
    }
    if (wanted instanceof DecimalType
        && found.getLogicalTypeAnnotation() instanceof DecimalLogicalTypeAnnotation digits) {
      return DataTypes.createDecimalType(digits.getPrecision(), digits.getScale());
    }
    return wanted;
  }

  private static NameMapping inside(NameMapping mapping, String part) {
    return mapping == null ? null : mapping.inside(part);
  }

  /** Parquet's rules for lists, with the two-level forms of old writers. */
  private static Type element(GroupType list) {
    Type repeated = list.getType(0);
    if (!repeated.isRepetition(Repetition.REPEATED)) {
      return repeated;
    }
    if (repeated.isPrimitive()
        || repeated.asGroupType().getFieldCount() != 1
        || repeated.getName().equals("array")
        || repeated.getName().equals(list.getName() + "_tuple")) {
      return repeated;
    }
    return repeated.asGroupType().getType(0);
  }

  @Override
  public String physicalName(String[] path, DataType literalType) {
    GroupType group = file;
    StructType struct = columns;
    NameMapping level = mapping;
    StringBuilder name = new StringBuilder();
    for (int i = 0; i < path.length; i++) {
      if (struct == null || struct.getFieldIndex(path[i]).isEmpty()) {
        return null;
      }
      StructField wanted = struct.apply(path[i]);
      Type found = find(group, level, wanted);
      if (found == null) {
        return null;
      }
      name.append(i == 0 ? "" : ".").append(quoted(found.getName()));
      if (found.isPrimitive()) {
        boolean whole = i == path.length - 1;
        boolean finer = literalType != null && TypeMark.of(wanted).isNanoseconds();
        return whole && !finer && isComparable(found.asPrimitiveType(), literalType) ? name.toString() : null;
      }
      group = found.asGroupType();
      level = level == null ? null : level.inside(found.getName());
      struct = wanted.dataType() instanceof StructType inner ? inner : null;
    }
    return null;
  }

  /** Whether statistics are comparable: the file may have a narrower type than the table. */
  private static boolean isComparable(PrimitiveType stored, DataType literal) {
    if (literal == null) {
      return true;
    }
    if (literal instanceof DecimalType decimal) {
      return stored.getLogicalTypeAnnotation() instanceof DecimalLogicalTypeAnnotation annotation
          && annotation.getPrecision() == decimal.precision()
          && annotation.getScale() == decimal.scale();
    }
    PrimitiveTypeName expected =
        switch (literal.typeName()) {
          case "boolean" -> PrimitiveTypeName.BOOLEAN;
          case "integer", "date" -> PrimitiveTypeName.INT32;
          case "long", "timestamp", "timestamp_ntz" -> PrimitiveTypeName.INT64;
          case "float" -> PrimitiveTypeName.FLOAT;
          case "double" -> PrimitiveTypeName.DOUBLE;
          case "string", "binary" -> PrimitiveTypeName.BINARY;
          default -> null;
        };
    return stored.getPrimitiveTypeName() == expected;
  }

  private static String quoted(String name) {
    boolean plain = name.matches("[a-zA-Z0-9_]+") && !name.matches("\\d+");
    return plain ? name : "`" + name.replace("`", "``") + "`";
  }
}
