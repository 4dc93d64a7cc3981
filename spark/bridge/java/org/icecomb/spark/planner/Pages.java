package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * One message of the protocol as lines: the first says all but its long lists, which follow in
 * pages, so that no line grows with the number of files.
 *
 * <p>{@code "pages": {"files": 3}} in the first line says that the next three lines are arrays, the
 * parts of the list {@code files} of the message's body.
 */
final class Pages {

  private static final int LONG = 100;
  private static final int PAGE_CHARACTERS = 1 << 20;

  private Pages() {}

  /** Where the next line of a message comes from. */
  @FunctionalInterface
  interface Lines {
    JsonNode next() throws IOException;
  }

  /**
   * @param body the member that holds the lists
   */
  static void write(ObjectNode message, String body, OutputStream out) throws IOException {
    ObjectNode first = Json.object();
    first.setAll(message);
    ObjectNode rest = Json.object();
    ObjectNode counts = Json.object();
    Map<String, List<String>> pages = new LinkedHashMap<>();
    for (Map.Entry<String, JsonNode> member : message.get(body).properties()) {
      if (member.getValue() instanceof ArrayNode list && list.size() > LONG) {
        List<String> lines = split(list);
        pages.put(member.getKey(), lines);
        counts.put(member.getKey(), lines.size());
      } else {
        rest.set(member.getKey(), member.getValue());
      }
    }
    if (!pages.isEmpty()) {
      first.set(body, rest);
      first.set("pages", counts);
    }
    line(Json.text(first), out);
    for (List<String> lines : pages.values()) {
      for (String text : lines) {
        line(text, out);
      }
    }
  }

  /** A message whose lines come one by one. */
  static ObjectNode read(String body, Lines lines) throws IOException {
    if (!(lines.next() instanceof ObjectNode message)) {
      throw new IOException("the planner sent no message");
    }
    JsonNode counts = message.remove("pages");
    if (counts == null || counts.isNull()) {
      return message;
    }
    ObjectNode content = (ObjectNode) message.get(body);
    for (Map.Entry<String, JsonNode> list : counts.properties()) {
      ArrayNode whole = content.putArray(list.getKey());
      for (int i = 0; i < list.getValue().asInt(); i++) {
        lines.next().forEach(whole::add);
      }
    }
    return message;
  }

  private static List<String> split(ArrayNode list) {
    List<String> pages = new ArrayList<>();
    StringBuilder page = new StringBuilder();
    for (JsonNode element : list) {
      String text = Json.text(element);
      if (page.length() > 0 && page.length() + text.length() > PAGE_CHARACTERS) {
        pages.add("[" + page + "]");
        page.setLength(0);
      }
      page.append(page.length() == 0 ? "" : ",").append(text);
    }
    pages.add("[" + page + "]");
    return pages;
  }

  private static void line(String text, OutputStream out) throws IOException {
    out.write(text.getBytes(StandardCharsets.UTF_8));
    out.write('\n');
  }
}
