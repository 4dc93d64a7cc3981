package org.icecomb.spark.statement;

import static org.icecomb.spark.statement.Tokens.EXPLAIN;
import static org.icecomb.spark.statement.Tokens.GAP;
import static org.icecomb.spark.statement.Tokens.NAME;
import static org.icecomb.spark.statement.Tokens.SPACE;
import static org.icecomb.spark.statement.Tokens.words;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * CREATE TABLE … LIKE, in which Spark up to 4.1 knows names of its own catalog only.
 *
 * @param explain {@code EXPLAIN} and its mode where the statement is only to be explained, else empty
 * @param ifNotExists these words, or empty
 * @param target the name of the table that is to be made, as it was written
 * @param source the name of the table or view that it is to be like
 * @param clauses what stands behind the names
 */
record LikeStatement(
    String explain, String ifNotExists, String target, String source, String clauses) {

  private static final Pattern BEGINNING =
      Pattern.compile(
          SPACE
              + "*("
              + EXPLAIN
              + ")"
              + words("CREATE TABLE")
              + GAP
              + "((?:"
              + words("IF NOT EXISTS")
              + GAP
              + ")?)("
              + NAME
              + ")"
              + GAP
              + words("LIKE")
              + GAP
              + "("
              + NAME
              + ")",
          Pattern.CASE_INSENSITIVE);

  /** The statement that a text is; null where it is none. */
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

  /** The statement with names that Spark's grammar has. */
  String frame() {
    return explain + "CREATE TABLE " + ifNotExists + "a LIKE b" + clauses;
  }
}
