package org.icecomb.spark.statement;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * CREATE TABLE … LIKE, in which Spark up to 4.1 supports only names of its own catalog.
 *
 * @param explain {@code EXPLAIN} and its mode if the statement is only to be explained, else empty
 * @param ifNotExists these words, or empty
 * @param target the name of the new table, as written
 * @param source the name of the table or view to copy
 * @param clauses the text after the names
 */
record LikeStatement(
    String explain, String ifNotExists, String target, String source, String clauses) {

  private static final Pattern BEGINNING =
      Tokens.statement("CREATE TABLE ((?:IF NOT EXISTS )?)(NAME) LIKE (NAME)");

  /** Parses a statement; null if it is not a CREATE TABLE … LIKE. */
  static LikeStatement find(String text) {
    Matcher matcher = BEGINNING.matcher(text);
    return matcher.lookingAt()
        ? new LikeStatement(
            matcher.group(1),
            matcher.group(2),
            matcher.group(3),
            matcher.group(4),
            text.substring(matcher.end()))
        : null;
  }

  /** The statement with names in Spark's grammar. */
  String frame() {
    return explain + "CREATE TABLE " + ifNotExists + "a LIKE b" + clauses;
  }
}
