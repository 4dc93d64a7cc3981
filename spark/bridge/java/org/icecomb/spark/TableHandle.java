package org.icecomb.spark;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.TableDescription;

/**
 * A table in the state that a statement holds on to.
 *
 * @param session asks the planner about it
 * @param name for messages
 * @param reference names the state; only the planner reads it
 * @param schema the columns with their field ids
 * @param user in whose name its files are read and written, or null
 */
public record TableHandle(
    PlannerSession session, String name, JsonNode reference, StructType schema, TaskUser user) {

  static TableHandle of(PlannerSession session, String name, TableDescription description) {
    return new TableHandle(
        session,
        name,
        description.reference(),
        Schemas.parse(description.schema()),
        TaskUser.current());
  }
}
