package org.icecomb.spark.convert;

/** The two parts of a variant; this Spark has none, see {@link Variants#check}. */
public record VariantParts(byte[] metadata, byte[] value) {

  public static VariantParts of(Object variant) {
    throw new IllegalArgumentException("No variant: " + variant);
  }
}
