package org.icecomb.spark;

import org.apache.spark.sql.connector.catalog.Column;

/** What some versions of Spark have and others have not, for the classes that all share. */
public final class SparkVersion {

  private SparkVersion() {}

  static boolean hasIdentity(Column column) {
    return column.identityColumnSpec() != null;
  }

  /** Whether Spark's Parquet reader reads a column as a wider type than the file has. */
  public static boolean widensColumns() {
    return true;
  }

  /** Whether Spark's own SQL has CALL. */
  public static boolean hasCall() {
    return true;
  }
}
