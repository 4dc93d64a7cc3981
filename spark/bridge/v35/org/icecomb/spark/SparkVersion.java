package org.icecomb.spark;

import org.apache.spark.sql.connector.catalog.Column;

/** What some versions of Spark have and others have not, for the classes that all share. */
final class SparkVersion {

  private SparkVersion() {}

  static boolean hasIdentity(Column column) {
    return false;
  }
}
