package org.icecomb.spark.source;

import org.apache.spark.sql.SparkSessionExtensions;

/** Empty: this Spark distinguishes reads of one table with different options. */
public final class RepeatedTables {

  private RepeatedTables() {}

  public static void refuse(SparkSessionExtensions extensions) {}
}
