package org.icecomb.spark.write;

import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.Type;
import org.apache.parquet.schema.Types;

/** The group of a variant in a Parquet file. */
final class VariantGroup {

  /** Whether this version of Parquet has the annotation by which readers know variants. */
  static final boolean IS_ANNOTATED = true;

  private static final byte SPECIFICATION_VERSION = 1;

  private VariantGroup() {}

  /** The group with the annotation, whatever the session's settings of it. */
  static GroupType annotated(GroupType group) {
    return Types.buildGroup(group.getRepetition())
        .as(LogicalTypeAnnotation.variantType(SPECIFICATION_VERSION))
        .addFields(group.getFields().toArray(new Type[0]))
        .named(group.getName());
  }
}
