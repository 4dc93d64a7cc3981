package org.icecomb.spark.functions;

/** Nothing before Spark 4.0, which joins tables of other numbers of buckets only after a shuffle. */
interface ReducibleBucket {}
