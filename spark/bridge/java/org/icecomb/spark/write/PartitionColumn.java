package org.icecomb.spark.write;

import java.io.Serializable;
import java.util.Locale;
import java.util.UUID;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Uuids;
import org.icecomb.spark.functions.PartitionTransform;
import org.icecomb.spark.functions.PartitionTransform.Kind;
import org.icecomb.spark.planner.Protocol;

/**
 * One field of the partition spec that a table is written with.
 *
 * @param ordinals the path to the source column in a row, one ordinal per level of structs
 * @param widths the numbers of fields of the structs on the path
 * @param uuid whether the source is a uuid, which rows have as text
 * @param bucket whether the transform is a bucket
 */
record PartitionColumn(
    String name,
    PartitionTransform transform,
    int[] ordinals,
    int[] widths,
    DataType type,
    boolean uuid,
    boolean bucket)
    implements Serializable {

  static PartitionColumn of(Protocol.PartitionColumn field, StructType schema) {
    String[] path = field.source().toArray(new String[0]);
    int[] ordinals = new int[path.length];
    int[] widths = new int[path.length];
    DataType type = schema;
    boolean uuid = false;
    for (int i = 0; i < path.length; i++) {
      StructType struct = (StructType) type;
      ordinals[i] = struct.fieldIndex(path[i]);
      StructField source = struct.fields()[ordinals[i]];
      type = source.dataType();
      uuid = Schemas.isUuid(source);
      widths[i] = type instanceof StructType inner ? inner.size() : 0;
    }
    Kind kind = Kind.valueOf(field.transform().toUpperCase(Locale.ROOT));
    PartitionTransform transform =
        new PartitionTransform(
            kind,
            field.parameter() == null ? 0 : field.parameter(),
            uuid && kind == Kind.BUCKET ? DataTypes.BinaryType : type);
    return new PartitionColumn(
        field.name(), transform, ordinals, widths, type, uuid, kind == Kind.BUCKET);
  }

  /** The partition value of a row; it may share the row's memory. A void field has no source. */
  Object value(InternalRow row) {
    if (ordinals.length == 0) {
      return null;
    }
    InternalRow level = row;
    int last = ordinals.length - 1;
    for (int i = 0; i < last; i++) {
      if (level.isNullAt(ordinals[i])) {
        return null;
      }
      level = level.getStruct(ordinals[i], widths[i]);
    }
    if (level.isNullAt(ordinals[last])) {
      return null;
    }
    Object value = level.get(ordinals[last], type);
    return transform.apply(uuid ? uuidSource(value.toString()) : value);
  }

  /** The 16 bytes for a bucket; the canonical text for a partition value. */
  private Object uuidSource(String text) {
    UUID value = Uuids.parse(text);
    return bucket ? Uuids.bytes(value) : UTF8String.fromString(value.toString());
  }
}
