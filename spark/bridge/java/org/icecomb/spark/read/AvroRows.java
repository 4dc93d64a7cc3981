package org.icecomb.spark.read;

import java.io.IOException;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.avro.LogicalType;
import org.apache.avro.LogicalTypes;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DatumReader;
import org.apache.avro.io.Decoder;
import org.apache.avro.util.Utf8;
import org.apache.spark.sql.execution.vectorized.WritableColumnVector;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.Decimal;
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
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.TypeMark;
import org.icecomb.spark.convert.Uuids;
import org.icecomb.spark.convert.Variants;

/**
 * Appends the rows of an Avro file to vectors, column by column of the table, found by field id.
 *
 * <p>Field ids are in the attributes {@code field-id} of the schema (Iceberg's specification,
 * Avro). The element of a list, the key and the value of a map are found by their position.
 */
final class AvroRows implements DatumReader<Void> {

  private static final int UUID_BYTES = 16;

  private final FileRequest request;
  private final WritableColumnVector[] vectors;
  private final boolean[] missing;
  private NameMapping mapping;
  /** One step for each field of the file, and the vector it appends to. */
  private Step[] steps;

  private WritableColumnVector[] targets;

  /** Reads one value and appends it to a vector, or skips it. */
  private interface Step {
    void read(Decoder in, WritableColumnVector to) throws IOException;
  }

  AvroRows(FileRequest request, WritableColumnVector[] vectors) {
    this.request = request;
    this.vectors = vectors;
    this.missing = new boolean[vectors.length];
  }

  /** Whether each column is missing in the file; known after its schema. */
  boolean[] missing() {
    return missing;
  }

  @Override
  public void setSchema(Schema schema) {
    AvroSchemaSize.check(schema);
    boolean named = !hasIds(schema);
    mapping = named ? request.mapping() : null;
    if (named && mapping == null && !schema.getFields().isEmpty()) {
      throw request.withoutIds();
    }
    Arrays.fill(missing, true);
    steps = new Step[schema.getFields().size()];
    targets = new WritableColumnVector[steps.length];
    for (Schema.Field field : schema.getFields()) {
      int place = Schemas.place(request.columns(), id(field, mapping));
      if (place < 0) {
        steps[field.pos()] = skip(field.schema());
      } else {
        missing[place] = false;
        StructField column = request.columns().fields()[place];
        steps[field.pos()] =
            step(
                field.schema(),
                column.dataType(),
                TypeMark.of(column),
                inside(mapping, field.name()),
                column.name());
        targets[field.pos()] = vectors[place];
      }
    }
  }

  @Override
  public Void read(Void reuse, Decoder in) throws IOException {
    for (int i = 0; i < steps.length; i++) {
      steps[i].read(in, targets[i]);
    }
    return null;
  }

  private static boolean hasIds(Schema schema) {
    return switch (schema.getType()) {
      case RECORD ->
          schema.getFields().stream()
              .anyMatch(field -> field.getObjectProp("field-id") != null || hasIds(field.schema()));
      case ARRAY ->
          schema.getObjectProp("element-id") != null || hasIds(schema.getElementType());
      case MAP -> schema.getObjectProp("value-id") != null || hasIds(schema.getValueType());
      case UNION -> schema.getTypes().stream().anyMatch(AvroRows::hasIds);
      default -> false;
    };
  }

  private static int id(Schema.Field field, NameMapping mapping) {
    if (mapping != null) {
      return mapping.id(field.name());
    }
    Object id = field.getObjectProp("field-id");
    return id == null ? -1 : Integer.parseInt(id.toString());
  }

  private static NameMapping inside(NameMapping mapping, String name) {
    return mapping == null ? null : mapping.inside(name);
  }

  private static Step step(
      Schema file, DataType wanted, TypeMark mark, NameMapping mapping, String name) {
    return switch (file.getType()) {
      case UNION -> union(file, wanted, mark, mapping, name);
      case RECORD -> {
        if (Variants.is(wanted)) {
          yield variant(file, name);
        }
        if (!(wanted instanceof StructType struct)) {
          throw misfit(file, wanted, name);
        }
        yield record(file, struct, mapping);
      }
      case ARRAY ->
          wanted instanceof MapType map
              ? pairs(file, map, mark, mapping, name)
              : array(file, wanted, mark, mapping, name);
      case MAP -> map(file, wanted, mark, mapping, name);
      default ->
          mark.isNanoseconds() && file.getType() != Schema.Type.NULL
              ? nanoseconds(file, wanted, name)
              : primitive(file, wanted, mark.isUuid(), name);
    };
  }

  private static Step union(
      Schema file, DataType wanted, TypeMark mark, NameMapping mapping, String name) {
    Step value = null;
    int found = -1;
    for (int i = 0; i < file.getTypes().size(); i++) {
      Schema branch = file.getTypes().get(i);
      if (branch.getType() == Schema.Type.NULL) {
        continue;
      }
      if (value == null) {
        value = step(branch, wanted, mark, mapping, name);
        found = i;
      } else {
        throw new UnsupportedOperationException(
            "column " + name + " is a union of several types: " + file
                + "\n  hint: Rewrite it with a union of null and one type.");
      }
    }
    int place = found;
    Step step = value;
    int branches = file.getTypes().size();
    return (in, to) -> {
      int index = in.readIndex();
      if (index == place) {
        step.read(in, to);
      } else if (index >= 0 && index < branches) {
        appendNull(to);
      } else {
        throw new IOException("column " + name + " has a value of no type of its union: " + index);
      }
    };
  }

  /** A step for unread values; the schema is examined once, not for every row. */
  private static Step skip(Schema file) {
    return switch (file.getType()) {
      case INT -> (in, to) -> in.readInt();
      case LONG -> (in, to) -> in.readLong();
      case FLOAT -> (in, to) -> in.skipFixed(Float.BYTES);
      case DOUBLE -> (in, to) -> in.skipFixed(Double.BYTES);
      case STRING -> (in, to) -> in.skipString();
      case BYTES -> (in, to) -> in.skipBytes();
      case UNION -> {
        Step[] branches = file.getTypes().stream().map(AvroRows::skip).toArray(Step[]::new);
        yield (in, to) -> branches[in.readIndex()].read(in, to);
      }
      default -> (in, to) -> GenericDatumReader.skip(file, in);
    };
  }

  private static void appendNull(WritableColumnVector to) {
    if (to.dataType() instanceof StructType || Variants.is(to.dataType())) {
      to.appendStruct(true);
    } else {
      to.appendNull();
    }
  }

  private static Step record(Schema file, StructType wanted, NameMapping mapping) {
    List<Step> fields = new ArrayList<>();
    boolean[] found = new boolean[wanted.size()];
    for (Schema.Field field : file.getFields()) {
      int place = Schemas.place(wanted, id(field, mapping));
      if (place < 0) {
        fields.add(skip(field.schema()));
      } else {
        found[place] = true;
        StructField child = wanted.fields()[place];
        Step step =
            step(
                field.schema(),
                child.dataType(),
                TypeMark.of(child),
                inside(mapping, field.name()),
                child.name());
        fields.add((in, to) -> step.read(in, to.getChild(place)));
      }
    }
    for (int i = 0; i < found.length; i++) {
      if (!found[i]) {
        int place = i;
        DataType type = wanted.fields()[i].dataType();
        Object value = InitialDefaults.of(wanted.fields()[i]);
        fields.add((in, to) -> append(value, type, to.getChild(place)));
      }
    }
    return struct(fields);
  }

  private static Step struct(List<Step> fields) {
    Step[] steps = fields.toArray(Step[]::new);
    return (in, to) -> {
      to.appendStruct(false);
      for (Step step : steps) {
        step.read(in, to);
      }
    };
  }

  /** A record of the two parts, which Spark's vector has the other way round. */
  private static Step variant(Schema file, String name) {
    List<Step> fields = new ArrayList<>();
    for (Schema.Field field : file.getFields()) {
      int place = List.of("value", "metadata").indexOf(field.name());
      Step part =
          place < 0
              ? skip(field.schema())
              : primitive(field.schema(), DataTypes.BinaryType, false, name + "." + field.name());
      fields.add(place < 0 ? part : (in, to) -> part.read(in, to.getChild(place)));
    }
    return struct(fields);
  }

  private static Step array(
      Schema file, DataType wanted, TypeMark mark, NameMapping mapping, String name) {
    if (!(wanted instanceof ArrayType array)) {
      throw misfit(file, wanted, name);
    }
    Step element =
        step(
            file.getElementType(),
            array.elementType(),
            mark.element(),
            inside(mapping, "element"),
            name + ".element");
    long[] left = {
      AvroSchemaSize.isEmpty(file.getElementType()) ? AvroSchemaSize.MOST_EMPTY : Long.MAX_VALUE
    };
    return (in, to) -> {
      int first = to.arrayData().getElementsAppended();
      int row = to.appendArray(0);
      int count = 0;
      for (long n = in.readArrayStart(); n != 0; n = in.arrayNext()) {
        left[0] -= n;
        if (left[0] < 0) {
          throw new IOException(
              "column " + name + " has more than " + AvroSchemaSize.MOST_EMPTY
                  + " elements that take no bytes"
                  + "\n  hint: Restore the file from a backup, or read an older snapshot.");
        }
        for (long i = 0; i < n; i++) {
          element.read(in, to.arrayData());
          count++;
        }
      }
      to.putArray(row, first, count);
    };
  }

  /** A map whose keys are not strings is an array of records of a key and a value. */
  private static Step pairs(
      Schema file, MapType map, TypeMark mark, NameMapping mapping, String name) {
    Schema pair = file.getElementType();
    if (pair.getType() != Schema.Type.RECORD || pair.getFields().size() != 2) {
      throw misfit(file, map, name);
    }
    Step key =
        step(
            pair.getFields().get(0).schema(),
            map.keyType(),
            mark.key(),
            inside(mapping, "key"),
            name + ".key");
    return entries(false, key, pair.getFields().get(1).schema(), map, mark, mapping, name);
  }

  private static Step map(
      Schema file, DataType wanted, TypeMark mark, NameMapping mapping, String name) {
    if (!(wanted instanceof MapType map) || !(map.keyType() instanceof StringType)) {
      throw misfit(file, wanted, name);
    }
    return entries(true, text(), file.getValueType(), map, mark, mapping, name);
  }

  private static Step entries(
      boolean isMap,
      Step key,
      Schema values,
      MapType map,
      TypeMark mark,
      NameMapping mapping,
      String name) {
    Step value =
        step(values, map.valueType(), mark.value(), inside(mapping, "value"), name + ".value");
    return (in, to) -> {
      int first = to.getChild(0).getElementsAppended();
      int row = to.appendArray(0);
      int count = 0;
      for (long n = isMap ? in.readMapStart() : in.readArrayStart();
          n != 0;
          n = isMap ? in.mapNext() : in.arrayNext()) {
        for (long i = 0; i < n; i++) {
          key.read(in, to.getChild(0));
          value.read(in, to.getChild(1));
          count++;
        }
      }
      to.putArray(row, first, count);
    };
  }

  private static Step primitive(Schema file, DataType wanted, boolean uuid, String name) {
    LogicalType logical = file.getLogicalType();
    Step step =
        switch (file.getType()) {
          case BOOLEAN ->
              wanted instanceof BooleanType ? (in, to) -> to.appendBoolean(in.readBoolean()) : null;
          case INT ->
              wanted instanceof IntegerType || wanted instanceof DateType
                  ? (in, to) -> to.appendInt(in.readInt())
                  : wanted instanceof LongType
                      ? (in, to) -> to.appendLong(in.readInt())
                      : wanted instanceof TimestampNTZType && logical instanceof LogicalTypes.Date
                          ? (in, to) -> to.appendLong(WidenedColumnVector.midnight(in.readInt()))
                          : null;
          case LONG -> longs(file, wanted);
          case FLOAT ->
              wanted instanceof FloatType
                  ? (in, to) -> to.appendFloat(in.readFloat())
                  : wanted instanceof DoubleType
                      ? (in, to) -> to.appendDouble(in.readFloat())
                      : null;
          case DOUBLE ->
              wanted instanceof DoubleType ? (in, to) -> to.appendDouble(in.readDouble()) : null;
          case STRING -> isBytes(wanted) ? text() : null;
          case ENUM ->
              wanted instanceof StringType
                  ? (in, to) -> appendText(new Utf8(file.getEnumSymbols().get(in.readEnum())), to)
                  : null;
          case BYTES ->
              logical instanceof LogicalTypes.Decimal decimal
                  ? decimal(decimal, wanted, AvroRows::bytes)
                  : isBytes(wanted)
                      ? (in, to) -> appendBytes(bytes(in), uuid, to)
                      : null;
          case FIXED ->
              logical instanceof LogicalTypes.Decimal decimal
                  ? decimal(decimal, wanted, in -> fixed(in, file.getFixedSize()))
                  : isBytes(wanted) && (!uuid || file.getFixedSize() == UUID_BYTES)
                      ? (in, to) -> appendBytes(fixed(in, file.getFixedSize()), uuid, to)
                      : null;
          case NULL -> (in, to) -> appendNull(to);
          default -> null;
        };
    if (step == null) {
      throw misfit(file, wanted, name);
    }
    return step;
  }

  private static Step longs(Schema file, DataType wanted) {
    if (wanted instanceof LongType) {
      return (in, to) -> to.appendLong(in.readLong());
    }
    if (!(wanted instanceof TimestampType || wanted instanceof TimestampNTZType)) {
      return null;
    }
    String unit = String.valueOf(file.getProp("logicalType"));
    if (unit.endsWith("timestamp-millis")) {
      return (in, to) -> to.appendLong(Math.multiplyExact(in.readLong(), 1000L));
    }
    if (unit.endsWith("timestamp-nanos")) {
      return (in, to) -> to.appendLong(Math.floorDiv(in.readLong(), 1000L));
    }
    return (in, to) -> to.appendLong(in.readLong());
  }

  /** A step for times in nanoseconds, or of an older or foreign file in another unit. */
  private static Step nanoseconds(Schema file, DataType wanted, String name) {
    if (file.getType() == Schema.Type.INT && file.getLogicalType() instanceof LogicalTypes.Date) {
      return (in, to) ->
          to.appendLong(Nanoseconds.of(WidenedColumnVector.midnight(in.readInt())));
    }
    String unit = String.valueOf(file.getProp("logicalType"));
    if (file.getType() == Schema.Type.LONG && unit.endsWith("timestamp-nanos")) {
      return (in, to) -> to.appendLong(in.readLong());
    }
    if (file.getType() == Schema.Type.LONG && unit.contains("timestamp-")) {
      Step micros = longs(file, DataTypes.TimestampNTZType);
      return (in, to) -> {
        int place = to.getElementsAppended();
        micros.read(in, to);
        to.putLong(place, Nanoseconds.of(to.getLong(place)));
      };
    }
    throw misfit(file, wanted, name);
  }

  private static Step text() {
    // A file is read by one thread, and the vector takes a copy.
    Utf8 buffer = new Utf8();
    return (in, to) -> {
      buffer.setByteLength(length(in));
      in.readFixed(buffer.getBytes(), 0, buffer.getByteLength());
      appendText(buffer, to);
    };
  }

  private static boolean isBytes(DataType wanted) {
    return wanted instanceof StringType || wanted instanceof BinaryType;
  }

  private interface Bytes {
    byte[] read(Decoder in) throws IOException;
  }

  private static Step decimal(LogicalTypes.Decimal file, DataType wanted, Bytes source) {
    if (!(wanted instanceof DecimalType decimal)
        || decimal.scale() != file.getScale()
        || decimal.precision() < file.getPrecision()) {
      return null;
    }
    if (decimal.precision() > Decimal.MAX_LONG_DIGITS()) {
      return (in, to) -> {
        byte[] unscaled = source.read(in);
        to.appendByteArray(unscaled, 0, unscaled.length);
      };
    }
    boolean small = decimal.precision() <= Decimal.MAX_INT_DIGITS();
    return (in, to) -> {
      long unscaled = new BigInteger(source.read(in)).longValueExact();
      if (small) {
        to.appendInt(Math.toIntExact(unscaled));
      } else {
        to.appendLong(unscaled);
      }
    };
  }

  private static byte[] fixed(Decoder in, int size) throws IOException {
    byte[] value = new byte[size];
    in.readFixed(value);
    return value;
  }

  private static byte[] bytes(Decoder in) throws IOException {
    return fixed(in, length(in));
  }

  /** Reads the length of bytes that must follow, before memory is taken for them. */
  private static int length(Decoder in) throws IOException {
    long length = in.readLong();
    if (length < 0 || length > ((BinaryDecoder) in).inputStream().available()) {
      throw new IOException(
          "a value of " + length + " bytes goes beyond its block"
              + "\n  hint: Restore the file from a backup, or read an older snapshot.");
    }
    return (int) length;
  }

  private static void appendText(Utf8 text, WritableColumnVector to) {
    to.appendByteArray(text.getBytes(), 0, text.getByteLength());
  }

  private static void appendBytes(byte[] value, boolean uuid, WritableColumnVector to) {
    if (uuid) {
      appendText(new Utf8(Uuids.text(value)), to);
    } else {
      to.appendByteArray(value, 0, value.length);
    }
  }

  /** Appends a value of {@link InitialDefaults}. */
  private static void append(Object value, DataType type, WritableColumnVector to) {
    if (value == null) {
      appendNull(to);
    } else if (value instanceof Map<?, ?> values) {
      StructType struct = (StructType) type;
      to.appendStruct(false);
      for (int i = 0; i < struct.size(); i++) {
        StructField field = struct.fields()[i];
        append(values.get(field.name()), field.dataType(), to.getChild(i));
      }
    } else if (value instanceof Boolean bool) {
      to.appendBoolean(bool);
    } else if (value instanceof Integer number) {
      to.appendInt(number);
    } else if (value instanceof Long number) {
      to.appendLong(number);
    } else if (value instanceof Float number) {
      to.appendFloat(number);
    } else if (value instanceof Double number) {
      to.appendDouble(number);
    } else if (value instanceof Decimal number) {
      int place = to.getElementsAppended();
      to.appendNull();
      to.putNotNull(place);
      to.putDecimal(place, number, ((DecimalType) type).precision());
    } else {
      byte[] bytes = value instanceof UTF8String text ? text.getBytes() : (byte[]) value;
      to.appendByteArray(bytes, 0, bytes.length);
    }
  }

  private static UnsupportedOperationException misfit(Schema file, DataType wanted, String name) {
    return new UnsupportedOperationException(
        "column " + name + " is " + file + " in the file and " + wanted.catalogString()
            + " in the table\n"
            + "  hint: The file was not written for this column; check field ids and name mapping.");
  }
}
