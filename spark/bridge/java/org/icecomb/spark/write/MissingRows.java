package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.List;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.Delta;

/**
 * The read of its table by an insert-only MERGE, to find the rows that are missing there. Spark
 * runs such a MERGE as an append of these rows.
 */
public final class MissingRows {

  private final JsonNode reference;
  private ArrayNode conditions;

  /**
   * @param reference the reference to the state that is read
   */
  public MissingRows(JsonNode reference) {
    this.reference = reference;
  }

  /**
   * Records a scan of the table. Several different scans count as one of all rows.
   *
   * @param chosen the scan's conditions
   */
  public synchronized void readBy(ArrayNode chosen) {
    conditions = conditions == null || conditions.equals(chosen) ? chosen : Json.array();
  }

  /** The read, for the planner; without conditions if Spark found that no row need be read. */
  synchronized Delta delta() {
    return new Delta(reference, conditions, List.of(), Json.array());
  }
}
