package org.icecomb.spark.read;

import java.util.HashSet;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.TableHandle;

/** The files selected by conditions on {@code _file}. */
final class NamedFiles {

  private NamedFiles() {}

  /**
   * The files selected by all conditions of the form {@code _file IN (…)} or {@code _file = …}.
   *
   * @param schema the schema of the table, whose own column of that name takes precedence
   * @return null for all files
   */
  static Set<String> of(Predicate[] predicates, StructType schema) {
    for (String column : schema.fieldNames()) {
      if (isColumn(column, MetadataColumns.FILE)) {
        return null;
      }
    }
    Set<String> left = null;
    for (Predicate predicate : predicates) {
      Set<String> named = of(predicate);
      if (named != null && left != null) {
        left.retainAll(named);
      } else if (named != null) {
        left = named;
      }
    }
    return left;
  }

  /** The files named by a condition, or null for other conditions. */
  private static Set<String> of(Predicate predicate) {
    Set<?> named = named(predicate, MetadataColumns.FILE, DataTypes.StringType);
    return named == null
        ? null
        : named.stream().map(Object::toString).collect(Collectors.toCollection(HashSet::new));
  }

  /** The files named by a condition on {@link MetadataColumns#FILE_ID}, or null for others. */
  static Set<Long> ids(Predicate predicate) {
    Set<?> named = named(predicate, MetadataColumns.FILE_ID, DataTypes.LongType);
    return named == null
        ? null
        : named.stream().map(Long.class::cast).collect(Collectors.toCollection(HashSet::new));
  }

  /** The values in {@code name IN (…)} or {@code name = …}; null for other conditions. */
  private static Set<?> named(Predicate predicate, String name, DataType type) {
    Expression[] children = predicate.children();
    boolean equal = predicate.name().equals("=") && children.length == 2;
    if (!equal && !predicate.name().equals("IN")) {
      return null;
    }
    int column = equal && children[0] instanceof Literal<?> ? 1 : 0;
    if (!(children[column] instanceof NamedReference reference)
        || reference.fieldNames().length != 1
        || !isColumn(reference.fieldNames()[0], name)) {
      return null;
    }
    Set<Object> named = new HashSet<>();
    for (int i = 0; i < children.length; i++) {
      if (i == column) {
        continue;
      }
      if (!(children[i] instanceof Literal<?> literal)
          || !literal.dataType().equals(type)) {
        return null;
      }
      if (literal.value() != null) {
        named.add(literal.value());
      }
    }
    return named;
  }

  private static boolean isColumn(String found, String name) {
    return TableHandle.isCaseSensitive() ? found.equals(name) : found.equalsIgnoreCase(name);
  }
}
