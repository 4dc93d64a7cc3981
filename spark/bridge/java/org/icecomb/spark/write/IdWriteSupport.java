package org.icecomb.spark.write;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;

/** Spark's Parquet writer with field ids everywhere, list elements and map entries included. */
final class IdWriteSupport extends ParquetWriteSupport {

  private final StructType schema;
  private final Map<String, String> footer;

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
    return new WriteContext(new MessageType(message.getName(), withIds(message, schema)), metadata);
  }

  private static List<Type> withIds(GroupType group, StructType struct) {
    List<Type> fields = new ArrayList<>();
    for (int i = 0; i < struct.size(); i++) {
      StructField field = struct.fields()[i];
      Metadata nested =
          field.metadata().contains(Schemas.NESTED_IDS)
              ? field.metadata().getMetadata(Schemas.NESTED_IDS)
              : Metadata.empty();
      fields.add(inside(group.getType(i), field.dataType(), nested, "").withId(Schemas.id(field)));
    }
    return fields;
  }

  /** The type with ids on all it contains; its own id is the caller's to give. */
  private static Type inside(Type type, DataType spark, Metadata nested, String path) {
    if (spark instanceof StructType struct) {
      return type.asGroupType().withNewFields(withIds(type.asGroupType(), struct));
    }
    if (spark instanceof ArrayType array) {
      GroupType repeated = type.asGroupType().getType(0).asGroupType();
      Type element = part(repeated.getType(0), array.elementType(), nested, path + "element");
      return type.asGroupType().withNewFields(repeated.withNewFields(element));
    }
    if (spark instanceof MapType map) {
      GroupType entries = type.asGroupType().getType(0).asGroupType();
      Type key = part(entries.getType(0), map.keyType(), nested, path + "key");
      Type value = part(entries.getType(1), map.valueType(), nested, path + "value");
      return type.asGroupType().withNewFields(entries.withNewFields(key, value));
    }
    return type;
  }

  private static Type part(Type type, DataType spark, Metadata nested, String path) {
    return inside(type, spark, nested, path + ".").withId((int) nested.getLong(path));
  }
}
