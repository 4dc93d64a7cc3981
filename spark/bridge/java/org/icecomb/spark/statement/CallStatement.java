package org.icecomb.spark.statement;

import static org.icecomb.spark.statement.Tokens.EXPLAIN;
import static org.icecomb.spark.statement.Tokens.GAP;
import static org.icecomb.spark.statement.Tokens.NAME;
import static org.icecomb.spark.statement.Tokens.SPACE;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * CALL, for a Spark whose grammar does not have it. What stands behind the word is written as the
 * call of a function, so Spark's grammar of expressions reads it.
 *
 * @param explain {@code EXPLAIN} and its mode where the statement is only to be explained, else empty
 * @param procedure the procedure's name as it was written
 * @param invocation the name and the arguments, at the place they have in the statement
 */
record CallStatement(String explain, String procedure, String invocation) {

  private static final Pattern BEGINNING =
      Pattern.compile(
          SPACE + "*(" + EXPLAIN + ")CALL" + GAP + "(" + NAME + ")" + SPACE + "*\\(",
          Pattern.CASE_INSENSITIVE);

  /** The statement that a text is; null where it is none. */
  static CallStatement find(String text) {
    Matcher matcher = BEGINNING.matcher(text);
    if (!matcher.lookingAt()) {
      return null;
    }
    int start = matcher.start(2);
    String before = text.substring(0, start).replaceAll("[^\\r\\n]", " ");
    return new CallStatement(
        matcher.group(1),
        matcher.group(2),
        before + text.substring(start).replaceFirst("[;\\s]+$", ""));
  }

  /** A statement that Spark's grammar has, explained in the same way. */
  String frame() {
    return explain + "SELECT 1";
  }
}
