package org.icecomb.spark.functions;

/** Empty before Spark 4.0, which joins hours with days only after a shuffle. */
interface ReducibleTime {}
