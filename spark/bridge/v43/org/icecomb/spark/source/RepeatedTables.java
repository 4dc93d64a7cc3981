package org.icecomb.spark.source;

import org.apache.spark.sql.SparkSessionExtensions;

/** Names of one table by different options: this Spark tells them apart. */
public final class RepeatedTables {

  private RepeatedTables() {}

  public static void refuse(SparkSessionExtensions extensions) {}
}
