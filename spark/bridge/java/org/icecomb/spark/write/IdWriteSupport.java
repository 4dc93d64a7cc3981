package org.icecomb.spark.write;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.TypeMark;
import org.icecomb.spark.convert.Variants;

/**
 * Spark's Parquet writer with the additions of Iceberg's specification: field ids everywhere,
 * including list elements and map entries, uuid and fixed columns as arrays of fixed length, and
 * variants marked as such.
 */
final class IdWriteSupport extends ParquetWriteSupport {

  private final StructType schema;
  private final Map<String, String> footer;
  private MessageType file;

  IdWriteSupport(StructType schemaWithIds, Map<String, String> footer) {
    this.schema = schemaWithIds;
    this.footer = footer;
  }

  @Override
  public WriteContext init(Configuration conf) {
    WriteContext context = super.init(conf);
    MessageType message = context.getSchema();
    Map<String, String> metadata = new HashMap<>(context.getExtraMetaData());
    metadata.putAll(footer);
    file = new MessageType(message.getName(), withIds(message, schema));
    return new WriteContext(file, metadata);
  }

  @Override
  public void prepareForWrite(RecordConsumer consumer) {
    super.prepareForWrite(
        FixedLengthConsumer.isNeeded(file) ? new FixedLengthConsumer(consumer, file) : consumer);
  }

  private static List<Type> withIds(GroupType group, StructType struct) {
    List<Type> fields = new ArrayList<>();
    for (int i = 0; i < struct.size(); i++) {
      StructField field = struct.fields()[i];
      fields.add(part(group.getType(i), field.dataType(), TypeMark.of(field)));
    }
    return fields;
  }

  private static Type part(Type type, DataType spark, TypeMark mark) {
    return fixedLength(inside(type, spark, mark), mark.icebergType()).withId(mark.id());
  }

  /** The type with ids on everything inside; the caller adds its own id. */
  private static Type inside(Type type, DataType spark, TypeMark mark) {
    if (spark instanceof StructType struct) {
      return type.asGroupType().withNewFields(withIds(type.asGroupType(), struct));
    }
    if (spark instanceof ArrayType array) {
      GroupType repeated = type.asGroupType().getType(0).asGroupType();
      Type element = part(repeated.getType(0), array.elementType(), mark.element());
      return type.asGroupType().withNewFields(repeated.withNewFields(element));
    }
    if (spark instanceof MapType map) {
      GroupType entries = type.asGroupType().getType(0).asGroupType();
      Type key = part(entries.getType(0), map.keyType(), mark.key());
      Type value = part(entries.getType(1), map.valueType(), mark.value());
      return type.asGroupType().withNewFields(entries.withNewFields(key, value));
    }
    return Variants.is(spark) ? VariantGroup.annotated(type.asGroupType()) : type;
  }

  /** The type of fixed length, for which Spark would write text or bytes of any length. */
  private static Type fixedLength(Type type, String icebergType) {
    if (icebergType.equals("uuid")) {
      return fixedLength(type, 16, LogicalTypeAnnotation.uuidType());
    }
    if (icebergType.startsWith("fixed[")) {
      String length = icebergType.substring("fixed[".length(), icebergType.length() - 1);
      return fixedLength(type, Integer.parseInt(length), null);
    }
    return type;
  }

  private static Type fixedLength(Type type, int length, LogicalTypeAnnotation annotation) {
    return Types.primitive(PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY, type.getRepetition())
        .length(length)
        .as(annotation)
        .named(type.getName());
  }
}
