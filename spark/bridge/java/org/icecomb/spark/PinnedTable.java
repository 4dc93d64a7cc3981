package org.icecomb.spark;

import org.apache.spark.sql.connector.catalog.Table;

/** A table of ours, or something below one, in the state that it was loaded in. */
public interface PinnedTable extends Table {

  /** The state. */
  TableHandle handle();

  /**
   * The same, which is not to stand for the table under its name.
   *
   * @param how what chooses the state among the table's, as part of its {@code id}
   */
  PinnedTable chosenBy(String how);
}
