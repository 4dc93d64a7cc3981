package org.icecomb.spark.statement;

import static org.icecomb.spark.statement.Tokens.GAP;
import static org.icecomb.spark.statement.Tokens.NAME;
import static org.icecomb.spark.statement.Tokens.SPACE;
import static org.icecomb.spark.statement.Tokens.words;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** CREATE TABLE … LIKE, in which Spark (up to 4.2) knows tables of its own catalog only. */
final class LikeStatement {

  private static final Pattern BEGINNING =
      Pattern.compile(
          SPACE
              + "*"
              + words("CREATE TABLE")
              + GAP
              + "(?:"
              + words("IF NOT EXISTS")
              + GAP
              + ")?("
              + NAME
              + ")"
              + GAP
              + words("LIKE")
              + GAP
              + NAME,
          Pattern.CASE_INSENSITIVE);

  private LikeStatement() {}

  /** The name of the table that a text is to make, as it was written; null where it is no such text. */
  static String target(String text) {
    Matcher matcher = BEGINNING.matcher(text);
    return matcher.lookingAt() ? matcher.group(1) : null;
  }
}
