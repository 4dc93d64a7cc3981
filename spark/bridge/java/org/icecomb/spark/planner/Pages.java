package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;

/**
 * Protocol messages as lines: pages of the long lists, then the rest, so that no line grows with
 * the number of files.
 *
 * <p>A page is a line <code>{"page": {"files": [...]}}</code>: parts of lists of the message's body.
 */
final class Pages {

  private static final int LONG = 100;
  private static final int PAGE_CHARACTERS = 1 << 20;
  private static final byte[] PAGE = "{\"page\":".getBytes(StandardCharsets.US_ASCII);

  /** Adds the pages to their message. */
  static final Taker GATHERED = null;

  private Pages() {}

  /** The source of a message's lines. */
  @FunctionalInterface
  interface Lines {
    byte[] next() throws IOException;
  }

  /** The destination of lines. */
  @FunctionalInterface
  interface Out {
    void write(byte[] bytes) throws IOException;
  }

  /** A consumer of pages: the text of each, and the range of the lists in it. */
  @FunctionalInterface
  interface Taker {
    void take(byte[] line, int from, int length) throws IOException;
  }

  /**
   * @param body the member that holds the lists
   */
  static void write(ObjectNode message, String body, Out out) throws IOException {
    ObjectNode rest = Json.object();
    for (Map.Entry<String, JsonNode> member : message.get(body).properties()) {
      if (member.getValue() instanceof ArrayNode list && list.size() > LONG) {
        split(member.getKey(), list, out);
      } else {
        rest.set(member.getKey(), member.getValue());
      }
    }
    ObjectNode last = Json.object();
    last.setAll(message);
    last.set(body, rest);
    line(Json.text(last), out);
  }

  /**
   * Reads a message line by line.
   *
   * @param taker consumes the pages, which are then not in the message; {@link #GATHERED} for none
   */
  static ObjectNode read(String body, Lines lines, Taker taker) throws IOException {
    ObjectNode gathered = Json.object();
    byte[] line = lines.next();
    for (; isPage(line); line = lines.next()) {
      if (taker == null) {
        add(Json.parse(line).get("page"), gathered);
      } else {
        taker.take(line, PAGE.length, line.length - PAGE.length - 1);
      }
    }
    if (!(Json.parse(line) instanceof ObjectNode message)) {
      throw new IOException("the planner sent no message");
    }
    if (message.get(body) instanceof ObjectNode content) {
      content.setAll(gathered);
    }
    return message;
  }

  private static boolean isPage(byte[] line) {
    return line.length > PAGE.length
        && Arrays.equals(line, 0, PAGE.length, PAGE, 0, PAGE.length);
  }

  private static void add(JsonNode page, ObjectNode lists) {
    for (Map.Entry<String, JsonNode> list : page.properties()) {
      list.getValue().forEach(lists.withArray("/" + list.getKey())::add);
    }
  }

  private static void split(String name, ArrayNode list, Out out) throws IOException {
    StringBuilder page = new StringBuilder();
    for (JsonNode element : list) {
      String text = Json.text(element);
      if (page.length() > 0 && page.length() + text.length() > PAGE_CHARACTERS) {
        page(name, page, out);
        page.setLength(0);
      }
      page.append(page.length() == 0 ? "" : ",").append(text);
    }
    page(name, page, out);
  }

  private static void page(String name, CharSequence elements, Out out) throws IOException {
    line("{\"page\":{\"" + name + "\":[" + elements + "]}}", out);
  }

  private static void line(String text, Out out) throws IOException {
    out.write((text + "\n").getBytes(StandardCharsets.UTF_8));
  }
}
