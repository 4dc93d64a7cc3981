package org.icecomb.spark.functions;

/** Empty before Spark 4.0, which joins tables with different bucket counts only after a shuffle. */
interface ReducibleBucket {}
