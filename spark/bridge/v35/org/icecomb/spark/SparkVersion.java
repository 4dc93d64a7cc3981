package org.icecomb.spark;

import org.apache.spark.sql.connector.catalog.Column;

/** What some versions of Spark have and others have not, for the classes that all share. */
public final class SparkVersion {

  private SparkVersion() {}

  static boolean hasIdentity(Column column) {
    return false;
  }

  /** Whether Spark's Parquet reader reads a column as a wider type than the file has. */
  public static boolean widensColumns() {
    return false;
  }

  /** Whether Spark's own SQL has CALL. */
  public static boolean hasCall() {
    return false;
  }
}
