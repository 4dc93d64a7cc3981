package org.icecomb.spark.write;

import org.apache.parquet.schema.GroupType;

/** The group of a variant in a Parquet file. */
final class VariantGroup {

  /** Whether this version of Parquet has the annotation by which readers know variants. */
  static final boolean IS_ANNOTATED = false;

  private VariantGroup() {}

  static GroupType annotated(GroupType group) {
    return group;
  }
}
