package org.icecomb.spark.statement;

import org.apache.spark.sql.connector.catalog.TableChange;

/**
 * A change of a table in the form of a statement, which the planner parses and executes.
 *
 * @param text the statement after the table's name
 * @param caseSensitive whether column names are case-sensitive in this session
 */
public record StatementChange(String text, boolean caseSensitive) implements TableChange {

  /** The text that EXPLAIN shows. */
  @Override
  public String toString() {
    return text;
  }
}
