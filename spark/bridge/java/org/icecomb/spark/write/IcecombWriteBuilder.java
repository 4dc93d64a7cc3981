package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.icecomb.spark.AuditSettings;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.PlannerException;

/** Asks the planner how rows are to be written into a table. */
public class IcecombWriteBuilder implements WriteBuilder {

  private final PlannerSession session;
  private final String tableName;
  private final JsonNode reference;
  private final LogicalWriteInfo info;

  public IcecombWriteBuilder(
      PlannerSession session, String tableName, JsonNode reference, LogicalWriteInfo info) {
    this.session = session;
    this.tableName = tableName;
    this.reference = reference;
    this.info = info;
  }

  @Override
  public final Write build() {
    ObjectNode request = Json.object();
    request.set("reference", reference);
    describe(request);
    request.set("options", Json.object(info.options().asCaseSensitiveMap()));
    request.set("audit", AuditSettings.now());
    try {
      return new IcecombWrite(
          session, tableName, session.ask("begin_write", request), this::commit);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }

  /** Says to the planner what the write is to do. */
  protected void describe(ObjectNode request) {
    request.put("operation", "append");
  }

  /**
   * Commits the files of a write.
   *
   * @param request what the planner is to be told of them
   * @param paths where they are
   */
  protected void commit(ObjectNode request, List<String> paths) {
    session.ask("commit_write", request);
  }
}
