package org.icecomb.spark;

import org.apache.spark.sql.connector.catalog.Table;

/** An icecomb table, or something below one, in the state in which it was loaded. */
public interface PinnedTable extends Table {

  /** The state. */
  TableHandle handle();

  /**
   * The same state, not to be used for the table by its name.
   *
   * @param how the selection of the state, as part of the table's {@code id}
   */
  PinnedTable chosenBy(String how);
}
