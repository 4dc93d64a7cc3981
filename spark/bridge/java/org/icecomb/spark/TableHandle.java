package org.icecomb.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.Request;
import org.icecomb.spark.planner.Protocol.Selection;
import org.icecomb.spark.planner.Protocol.TableDescription;

/**
 * A table in the state pinned by a statement.
 *
 * @param session the catalog's connection to the planner
 * @param name the name for messages
 * @param reference the reference to the state, opaque to the bridge
 * @param schema the columns with their field ids
 * @param user the user on whose behalf its files are read and written, or null
 * @param opener the user whose statement opened it
 * @param uuid the table's uuid
 * @param table the name of the table itself in the catalog
 * @param below whether it was named as something below the table
 */
public record TableHandle(
    PlannerSession session,
    String name,
    JsonNode reference,
    StructType schema,
    TaskUser user,
    String opener,
    String uuid,
    List<String> table,
    boolean below) {

  static TableHandle of(PlannerSession session, String name, TableDescription description) {
    return new TableHandle(
        session,
        name,
        description.reference(),
        Schemas.parse(description.schema()),
        TaskUser.current(),
        HadoopUser.key(HadoopUser.current()),
        description.uuid(),
        description.table(),
        description.below());
  }

  /** Whether the other handle has the same state, name and catalog. */
  public boolean isStateOf(TableHandle other) {
    return session == other.session && name.equals(other.name) && reference.equals(other.reference);
  }

  /** Refreshes the table in sessions that have cached it under another name, after a commit. */
  public void refreshCached() {
    CachedTables.refresh(uuid, session.catalogName(), table, below);
  }

  /**
   * The same handle, for the statement that begins in this thread. Another user's statement is
   * refused: the planner would answer it with the rights of the user who opened the table. Threads
   * that later run parts of a statement may have been started by another user.
   */
  public TableHandle ofCurrentUser() {
    String asking = HadoopUser.key(HadoopUser.current());
    if (!asking.equals(opener)) {
      throw SparkErrors.unsupported(
          "A statement of " + asking + " reads or changes " + name + " as " + opener + " opened it",
          "Let each user of a server name the table in their own statement, not in a DataFrame or"
              + " view of another user.");
    }
    return this;
  }

  /** The selection of a query of the current session. */
  public Selection selection(ArrayNode filters, CaseInsensitiveStringMap options) {
    return new Selection(
        reference,
        filters,
        isCaseSensitive(),
        options.asCaseSensitiveMap(),
        IcebergSettings.now());
  }

  /** Whether names are case-sensitive in the current session. */
  public static boolean isCaseSensitive() {
    return SparkSession.active().sessionState().conf().caseSensitiveAnalysis();
  }

  /** Sends a request to the planner, whose errors are converted to Spark's. */
  public <T extends Record> T ask(Request request, Class<T> kind) {
    try {
      return session.ask(catalog -> request, kind);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }

  /** Sends a request whose answer has pages, see {@link PlannerSession}. */
  public <P extends Record, T extends Record> T ask(
      Request request, Class<P> page, Supplier<Consumer<P>> begun, Class<T> kind) {
    try {
      return session.ask(catalog -> request, page, begun, kind);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }
}
