package org.icecomb.spark.write;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.apache.parquet.io.api.Binary;
import org.apache.parquet.io.api.RecordConsumer;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation.UUIDLogicalTypeAnnotation;
import org.apache.parquet.schema.MessageType;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.icecomb.spark.convert.FixedLength;
import org.icecomb.spark.convert.Uuids;

/** A consumer that passes uuids as 16 bytes to Parquet, and checks the length of fixed values. */
final class FixedLengthConsumer extends RecordConsumer {

  private final RecordConsumer next;
  private final Deque<Type> path = new ArrayDeque<>();

  FixedLengthConsumer(RecordConsumer next, MessageType file) {
    this.next = next;
    path.push(file);
  }

  /** Whether the file has such columns; Spark's long decimals have a fixed length of their own. */
  static boolean isNeeded(Type type) {
    return type.isPrimitive()
        ? isFixed(type.asPrimitiveType())
        : type.asGroupType().getFields().stream().anyMatch(FixedLengthConsumer::isNeeded);
  }

  private static boolean isFixed(PrimitiveType type) {
    return type.getPrimitiveTypeName() == PrimitiveTypeName.FIXED_LEN_BYTE_ARRAY
        && (type.getLogicalTypeAnnotation() == null || isUuid(type));
  }

  private static boolean isUuid(PrimitiveType type) {
    return type.getLogicalTypeAnnotation() instanceof UUIDLogicalTypeAnnotation;
  }

  @Override
  public void startField(String field, int index) {
    GroupType group = path.peek().asGroupType();
    path.push(group.getType(index));
    next.startField(field, index);
  }

  @Override
  public void endField(String field, int index) {
    path.pop();
    next.endField(field, index);
  }

  @Override
  public void addBinary(Binary value) {
    PrimitiveType type = path.peek().asPrimitiveType();
    if (!isFixed(type)) {
      next.addBinary(value);
    } else if (isUuid(type)) {
      byte[] uuid = Uuids.bytes(Uuids.parse(value.toStringUsingUTF8()));
      next.addBinary(Binary.fromConstantByteArray(uuid));
    } else {
      if (value.length() != type.getTypeLength()) {
        FixedLength.check(name(), type.getTypeLength(), value.length());
      }
      next.addBinary(value);
    }
  }

  private String name() {
    List<String> names = new ArrayList<>();
    for (Type type : path) {
      if (!type.isRepetition(Type.Repetition.REPEATED)) {
        names.add(0, type.getName());
      }
    }
    return String.join(".", names);
  }

  @Override
  public void startMessage() {
    next.startMessage();
  }

  @Override
  public void endMessage() {
    next.endMessage();
  }

  @Override
  public void startGroup() {
    next.startGroup();
  }

  @Override
  public void endGroup() {
    next.endGroup();
  }

  @Override
  public void addInteger(int value) {
    next.addInteger(value);
  }

  @Override
  public void addLong(long value) {
    next.addLong(value);
  }

  @Override
  public void addBoolean(boolean value) {
    next.addBoolean(value);
  }

  @Override
  public void addFloat(float value) {
    next.addFloat(value);
  }

  @Override
  public void addDouble(double value) {
    next.addDouble(value);
  }

  @Override
  public void flush() {
    next.flush();
  }
}
