package org.icecomb.spark.write;

import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.avro.Schema;
import org.apache.avro.io.DatumWriter;
import org.apache.avro.io.Encoder;
import org.apache.avro.util.Utf8;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.FixedLength;
import org.icecomb.spark.convert.TypeMark;
import org.icecomb.spark.convert.VariantParts;
import org.icecomb.spark.convert.Variants;

/** An encoder of Spark's rows by an Avro schema with the same fields in the same order. */
final class AvroRowEncoder implements DatumWriter<InternalRow> {

  private final StructType columns;
  private Step[] steps;

  /** Encodes one value. */
  private interface Step {
    void write(Encoder out, SpecializedGetters from, int ordinal) throws IOException;
  }

  AvroRowEncoder(StructType columns) {
    this.columns = columns;
  }

  @Override
  public void setSchema(Schema schema) {
    steps = fields(schema, columns);
  }

  @Override
  public void write(InternalRow row, Encoder out) throws IOException {
    for (int i = 0; i < steps.length; i++) {
      steps[i].write(out, row, i);
    }
  }

  private static Step[] fields(Schema file, StructType struct) {
    List<Step> steps = new ArrayList<>();
    for (int i = 0; i < struct.size(); i++) {
      StructField field = struct.fields()[i];
      Schema type = file.getFields().get(i).schema();
      steps.add(step(type, field.dataType(), TypeMark.of(field)));
    }
    return steps.toArray(new Step[0]);
  }

  private static Step step(Schema file, DataType spark, TypeMark mark) {
    FixedLength fixed = FixedLength.of(mark);
    return switch (file.getType()) {
      case UNION -> optional(file, spark, mark);
      case RECORD ->
          Variants.is(spark) ? variant(file, spark) : record(fields(file, (StructType) spark));
      case ARRAY ->
          spark instanceof MapType map
              ? pairs(file.getElementType(), map, mark)
              : array(
                  step(file.getElementType(), ((ArrayType) spark).elementType(), mark.element()));
      case MAP -> map(step(file.getValueType(), ((MapType) spark).valueType(), mark.value()));
      case BOOLEAN -> (out, from, ordinal) -> out.writeBoolean(from.getBoolean(ordinal));
      case INT -> (out, from, ordinal) -> out.writeInt(from.getInt(ordinal));
      case LONG -> (out, from, ordinal) -> out.writeLong(from.getLong(ordinal));
      case FLOAT -> (out, from, ordinal) -> out.writeFloat(from.getFloat(ordinal));
      case DOUBLE -> (out, from, ordinal) -> out.writeDouble(from.getDouble(ordinal));
      case STRING ->
          (out, from, ordinal) ->
              out.writeString(new Utf8(from.getUTF8String(ordinal).getBytes()));
      case BYTES ->
          (out, from, ordinal) -> out.writeBytes(ByteBuffer.wrap(from.getBinary(ordinal)));
      case FIXED ->
          spark instanceof DecimalType decimal
              ? decimal(decimal, file.getFixedSize())
              : (out, from, ordinal) -> out.writeFixed(fixed.bytes(from, ordinal));
      default -> throw new IllegalArgumentException("Column " + mark.name() + ": no values of " + file);
    };
  }

  private static Step optional(Schema union, DataType spark, TypeMark mark) {
    int none = union.getTypes().get(0).getType() == Schema.Type.NULL ? 0 : 1;
    int some = 1 - none;
    Step value = step(union.getTypes().get(some), spark, mark);
    return (out, from, ordinal) -> {
      if (from.isNullAt(ordinal)) {
        out.writeIndex(none);
        out.writeNull();
      } else {
        out.writeIndex(some);
        value.write(out, from, ordinal);
      }
    };
  }

  private static Step record(Step[] fields) {
    return (out, from, ordinal) -> {
      InternalRow struct = from.getStruct(ordinal, fields.length);
      for (int i = 0; i < fields.length; i++) {
        fields[i].write(out, struct, i);
      }
    };
  }

  /** A record of the two parts, in the order of the file's schema. */
  private static Step variant(Schema file, DataType spark) {
    boolean metadataFirst = file.getField("metadata").pos() == 0;
    return (out, from, ordinal) -> {
      VariantParts parts = VariantParts.of(from.get(ordinal, spark));
      out.writeBytes(metadataFirst ? parts.metadata() : parts.value());
      out.writeBytes(metadataFirst ? parts.value() : parts.metadata());
    };
  }

  private static Step array(Step element) {
    return (out, from, ordinal) -> {
      ArrayData elements = from.getArray(ordinal);
      out.writeArrayStart();
      out.setItemCount(elements.numElements());
      for (int i = 0; i < elements.numElements(); i++) {
        out.startItem();
        element.write(out, elements, i);
      }
      out.writeArrayEnd();
    };
  }

  /** A map whose keys are not strings is an array of records of a key and a value. */
  private static Step pairs(Schema pair, MapType map, TypeMark mark) {
    Step key = step(pair.getFields().get(0).schema(), map.keyType(), mark.key());
    Step value = step(pair.getFields().get(1).schema(), map.valueType(), mark.value());
    return (out, from, ordinal) -> {
      MapData entries = from.getMap(ordinal);
      ArrayData keys = entries.keyArray();
      ArrayData values = entries.valueArray();
      out.writeArrayStart();
      out.setItemCount(entries.numElements());
      for (int i = 0; i < entries.numElements(); i++) {
        out.startItem();
        key.write(out, keys, i);
        value.write(out, values, i);
      }
      out.writeArrayEnd();
    };
  }

  private static Step map(Step value) {
    return (out, from, ordinal) -> {
      MapData entries = from.getMap(ordinal);
      ArrayData keys = entries.keyArray();
      ArrayData values = entries.valueArray();
      out.writeMapStart();
      out.setItemCount(entries.numElements());
      for (int i = 0; i < entries.numElements(); i++) {
        out.startItem();
        out.writeString(new Utf8(keys.getUTF8String(i).getBytes()));
        value.write(out, values, i);
      }
      out.writeMapEnd();
    };
  }

  private static Step decimal(DecimalType type, int size) {
    return (out, from, ordinal) -> {
      BigInteger unscaled =
          from.getDecimal(ordinal, type.precision(), type.scale())
              .toJavaBigDecimal()
              .unscaledValue();
      byte[] shortest = unscaled.toByteArray();
      byte[] bytes = new byte[size];
      int padding = size - shortest.length;
      Arrays.fill(bytes, 0, padding, (byte) (unscaled.signum() < 0 ? 0xFF : 0));
      System.arraycopy(shortest, 0, bytes, padding, shortest.length);
      out.writeFixed(bytes);
    };
  }
}
