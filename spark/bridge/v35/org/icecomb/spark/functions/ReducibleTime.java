package org.icecomb.spark.functions;

/** Nothing before Spark 4.0, which joins hours with days only after a shuffle. */
interface ReducibleTime {}
