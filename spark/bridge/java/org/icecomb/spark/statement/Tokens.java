package org.icecomb.spark.statement;

/** Patterns of the tokens of statements, by Spark's rules. */
final class Tokens {

  private static final String COMMENT = "--[^\\r\\n]*|/\\*(?!\\+)(?s:.*?)\\*/";
  static final String SPACE = "(?:\\s|" + COMMENT + ")";
  static final String GAP = SPACE + "+";
  private static final String PART = "(?:`(?:[^`]|``)*`|\"[^\"]*\"|[\\p{L}\\p{N}_]+)";
  static final String NAME = PART + "(?:" + SPACE + "*\\." + SPACE + "*" + PART + ")*";

  /** {@code EXPLAIN} and its mode, or nothing. */
  static final String EXPLAIN =
      "(?:EXPLAIN(?:" + GAP + "(?:EXTENDED|CODEGEN|COST|FORMATTED))?" + GAP + ")?";

  private Tokens() {}

  /** Whole words with any blanks and comments between them. */
  static String words(String phrase) {
    return phrase.replace(" ", GAP) + "(?![\\p{L}\\p{N}_])";
  }
}
