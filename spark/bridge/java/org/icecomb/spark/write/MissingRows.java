package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.List;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.Delta;

/**
 * What a MERGE that only inserts has read of its table, to find which rows are missing there. Spark makes
 * an append of such a MERGE, of what its source has more than the table.
 */
public final class MissingRows {

  private final JsonNode reference;
  private ArrayNode conditions;

  /**
   * @param reference names the state that is read
   */
  public MissingRows(JsonNode reference) {
    this.reference = reference;
  }

  /**
   * Takes down a scan of the table. Several that differ make all its rows.
   *
   * @param chosen what the rows are chosen by
   */
  public synchronized void readBy(ArrayNode chosen) {
    conditions = conditions == null || conditions.equals(chosen) ? chosen : Json.array();
  }

  /** What the planner is told of it; no conditions where Spark found that no row need be read. */
  synchronized Delta delta() {
    return new Delta(reference, conditions, List.of(), Json.array());
  }
}
