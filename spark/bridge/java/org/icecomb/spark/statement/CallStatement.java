package org.icecomb.spark.statement;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * CALL, for a Spark whose grammar does not have it. The text after the word has the form of a
 * function call, so Spark's grammar of expressions parses it.
 *
 * @param explain {@code EXPLAIN} and its mode if the statement is only to be explained, else empty
 * @param procedure the procedure's name as written
 * @param invocation the name and the arguments, at their position in the statement
 */
record CallStatement(String explain, String procedure, String invocation) {

  private static final Pattern BEGINNING =
      Tokens.statement("CALL (NAME)" + Tokens.SPACE + "*\\(");

  /** Parses a statement; null if it is not a CALL. */
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

  /** A statement in Spark's grammar, explained in the same way. */
  String frame() {
    return explain + "SELECT 1";
  }
}
