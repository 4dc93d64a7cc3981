package org.icecomb.spark.statement;

import static org.icecomb.spark.statement.Tokens.words;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The beginning of a statement that Spark's grammar does not have: the table that it alters, and
 * the text after the table's name, which only the planner parses.
 *
 * @param explain {@code EXPLAIN} and its mode if the statement is only to be explained, else empty
 * @param table the table's name as written
 * @param change the text of the change
 * @param certain whether it begins like one of icecomb's statements; else it only contains such
 *     words, and is icecomb's if Spark does not know it
 */
record AlterStatement(String explain, String table, String change, boolean certain) {

  private static final Pattern BEGINNING =
      Tokens.statement(
          "ALTER TABLE (NAME) (?:(?="
              + words(
                  "(?:(?:ADD|DROP|REPLACE) PARTITION FIELD"
                      + "|(?:SET|DROP) IDENTIFIER FIELDS"
                      + "|WRITE (?:(?:LOCALLY )?ORDERED|UNORDERED|DISTRIBUTED)"
                      + "|(?:(?:CREATE OR )?REPLACE|CREATE|DROP) (?:BRANCH|TAG))")
              + ")()|(?="
              + words("(?:WRITE|\\w+ (?:\\w+ )?(?:BRANCH(?:ES)?|TAGS?|PARTITION FIELDS?|IDENTIFIER))")
              + "))");

  /** Parses a statement; null if it is not one of icecomb's. */
  static AlterStatement find(String text) {
    Matcher matcher = BEGINNING.matcher(text);
    return matcher.lookingAt()
        ? new AlterStatement(
            matcher.group(1),
            matcher.group(2),
            text.substring(matcher.end()).strip(),
            matcher.group(3) != null)
        : null;
  }

  /** A statement about the same table in Spark's grammar. */
  String frame() {
    return explain + "ALTER TABLE " + table + " SET TBLPROPERTIES ('statement'='')";
  }
}
