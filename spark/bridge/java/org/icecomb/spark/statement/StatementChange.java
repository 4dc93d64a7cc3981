package org.icecomb.spark.statement;

import org.apache.spark.sql.connector.catalog.TableChange;

/**
 * A change of a table in the words of a statement; the planner parses and makes it.
 *
 * @param text the statement from behind the table's name
 * @param caseSensitive whether names of columns tell {@code Id} from {@code id} in this session
 */
public record StatementChange(String text, boolean caseSensitive) implements TableChange {

  /** What EXPLAIN shows. */
  @Override
  public String toString() {
    return text;
  }
}
