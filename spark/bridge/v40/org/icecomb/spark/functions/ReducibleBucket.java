package org.icecomb.spark.functions;

import java.io.Serializable;
import java.math.BigInteger;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/**
 * Buckets that can be reduced to fewer: the number of a bucket of n modulo a divisor of n is the
 * bucket for that divisor, so that tables with different bucket counts are joined by a common
 * divisor.
 */
interface ReducibleBucket extends ReducibleFunction<Integer, Integer> {

  /** Declared by every function. */
  String canonicalName();

  @Override
  default Reducer<Integer, Integer> reducer(
      int buckets, ReducibleFunction<?, ?> other, int otherBuckets) {
    int common =
        BigInteger.valueOf(buckets).gcd(BigInteger.valueOf(otherBuckets)).intValueExact();
    boolean same =
        other instanceof ReducibleBucket bucket && bucket.canonicalName().equals(canonicalName());
    return same && common > 1 && common < buckets ? new Remainder(common) : null;
  }

  /** The bucket among fewer; Spark sends it with tasks. */
  record Remainder(int buckets) implements Reducer<Integer, Integer>, Serializable {

    @Override
    public Integer reduce(Integer bucket) {
      return bucket == null ? null : bucket % buckets;
    }

    /** Used by Spark 4.2 and later. */
    public DataType resultType() {
      return DataTypes.IntegerType;
    }
  }
}
