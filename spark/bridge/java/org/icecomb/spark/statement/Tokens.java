package org.icecomb.spark.statement;

import java.util.regex.Pattern;

/** Patterns of the tokens of statements, by Spark's rules. */
final class Tokens {

  private static final String COMMENT = "--[^\\r\\n]*|/\\*(?!\\+)(?s:.*?)\\*/";
  static final String SPACE = "(?:\\s|" + COMMENT + ")";
  private static final String GAP = SPACE + "+";
  private static final String PART = "(?:`(?:[^`]|``)*`|\"[^\"]*\"|[\\p{L}\\p{N}_]+)";
  private static final String NAME = PART + "(?:" + SPACE + "*\\." + SPACE + "*" + PART + ")*";

  /** {@code EXPLAIN} and its mode, or nothing. */
  private static final String EXPLAIN =
      "(?:EXPLAIN(?:" + GAP + "(?:EXTENDED|CODEGEN|COST|FORMATTED))?" + GAP + ")?";

  private Tokens() {}

  /**
   * The beginning of a statement, which may be explained: {@code EXPLAIN} is the first group.
   *
   * @param text words, with {@code NAME} for names
   */
  static Pattern statement(String text) {
    String tokens = text.replace("NAME", NAME).replace(" ", GAP);
    return Pattern.compile(SPACE + "*(" + EXPLAIN + ")" + tokens, Pattern.CASE_INSENSITIVE);
  }

  /** Whole words with any blanks and comments between them. */
  static String words(String phrase) {
    return phrase.replace(" ", GAP) + "(?![\\p{L}\\p{N}_])";
  }
}
