package org.icecomb.spark;

import java.util.List;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;

/** Tables cached by sessions: this Spark uses them only if the table equals the cached one. */
public final class CachedTables {

  private CachedTables() {}

  /** Whether Spark may have taken a relation from its cache, regardless of its age. */
  public static boolean mayStay(DataSourceV2Relation relation) {
    return false;
  }

  /** Whether nothing is cached. */
  public static boolean areNone() {
    return true;
  }

  /** Refreshes a table that is cached under other names than the one it was written by. */
  static void refresh(String uuid, String catalog, List<String> table, boolean below) {}
}
