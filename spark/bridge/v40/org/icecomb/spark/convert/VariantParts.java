package org.icecomb.spark.convert;

import org.apache.spark.unsafe.types.VariantVal;

/** The two parts of a variant. */
public record VariantParts(byte[] metadata, byte[] value) {

  public static VariantParts of(Object variant) {
    VariantVal value = (VariantVal) variant;
    return new VariantParts(value.getMetadata(), value.getValue());
  }
}
