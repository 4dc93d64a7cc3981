package org.apache.hadoop.hive.ql.exec;

import java.util.ArrayList;
import java.util.List;
import org.apache.hive.com.esotericsoftware.kryo.Kryo;
import org.apache.hive.com.esotericsoftware.kryo.Serializer;
import org.apache.hive.com.esotericsoftware.kryo.io.Input;
import org.apache.hive.com.esotericsoftware.kryo.io.Output;

/**
 * Stands before the class of this name in Hive 3.1, which looks for a field of {@code ArrayList}'s
 * sublists that only Java 8 has.
 */
class SerializationUtilities$ArrayListSubListSerializer extends Serializer<List<?>> {
  @Override
  public List<?> read(Kryo kryo, Input input, Class<List<?>> type) {
    return (List<?>) kryo.readClassAndObject(input);
  }

  @Override
  public void write(Kryo kryo, Output output, List<?> list) {
    kryo.writeClassAndObject(output, new ArrayList<>(list));
  }
}
