package org.icecomb.spark.read;

import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;

/**
 * The size of an Avro schema when each reference to a named type stands for the whole type, within
 * the default limits of icecomb in Python (its page "configuration").
 *
 * <p>A few hundred bytes, in which each type has the one before it twice, expand to more types than
 * any memory holds; and values that take no bytes may be stated in any number.
 */
final class AvroSchemaSize {

  /** The most values without bytes in the arrays of a file. */
  static final long MOST_EMPTY = 1 << 23;

  private static final long MOST_TYPES = 100_000;
  private static final int LONGEST_FIXED = 1 << 16;

  private final Map<Schema, Size> known = new IdentityHashMap<>();

  /** The number of types, and whether a value may take no bytes. */
  private record Size(long types, boolean isEmpty) {}

  private AvroSchemaSize() {}

  /** Refuses a schema beyond the limits, or with a type that contains itself. */
  static void check(Schema schema) {
    new AvroSchemaSize().of(schema);
  }

  /** Whether values of a checked schema take no bytes. */
  static boolean isEmpty(Schema schema) {
    return new AvroSchemaSize().of(schema).isEmpty();
  }

  private Size of(Schema schema) {
    if (known.containsKey(schema)) {
      Size size = known.get(schema);
      if (size == null) {
        throw refused("has a type that contains itself");
      }
      return size;
    }
    known.put(schema, null);
    Size size =
        switch (schema.getType()) {
          case NULL -> new Size(1, true);
          case RECORD -> joined(schema.getFields().stream().map(Schema.Field::schema).toList());
          case UNION -> new Size(joined(schema.getTypes()).types(), false);
          case ARRAY -> new Size(joined(List.of(schema.getElementType())).types(), false);
          case MAP -> new Size(joined(List.of(schema.getValueType())).types(), false);
          case FIXED -> fixed(schema.getFixedSize());
          default -> new Size(1, false);
        };
    known.put(schema, size);
    return size;
  }

  private Size joined(List<Schema> parts) {
    long types = 1;
    boolean isEmpty = true;
    for (Schema part : parts) {
      Size size = of(part);
      types += size.types();
      isEmpty &= size.isEmpty();
      if (types > MOST_TYPES) {
        throw refused("has more than " + MOST_TYPES + " types");
      }
    }
    return new Size(types, isEmpty);
  }

  private static Size fixed(int size) {
    if (size > LONGEST_FIXED) {
      throw refused("has values of a fixed length of " + size + " bytes");
    }
    return new Size(1, size == 0);
  }

  private static UnsupportedOperationException refused(String problem) {
    return new UnsupportedOperationException(
        "the schema of an Avro file " + problem
            + "\n  hint: Restore the file from a backup, or read an older snapshot.");
  }
}
