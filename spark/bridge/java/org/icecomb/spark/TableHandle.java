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
 * A table in the state that a statement holds on to.
 *
 * @param session asks the planner about it
 * @param name for messages
 * @param reference names the state; only the planner reads it
 * @param schema the columns with their field ids
 * @param user in whose name its files are read and written, or null
 * @param opener whose statement opened it
 * @param table the name of the table itself in the catalog
 * @param below whether this is named as something below the table
 */
public record TableHandle(
    PlannerSession session,
    String name,
    JsonNode reference,
    StructType schema,
    TaskUser user,
    String opener,
    List<String> table,
    boolean below) {

  static TableHandle of(PlannerSession session, String name, TableDescription description) {
    return new TableHandle(
        session,
        name,
        description.reference(),
        Schemas.parse(description.schema()),
        TaskUser.current(),
        HadoopUser.current().key(),
        description.table(),
        description.below());
  }

  /** Whether the other one is of the same state, by the same name in the same catalog. */
  public boolean isStateOf(TableHandle other) {
    return session == other.session && name.equals(other.name) && reference.equals(other.reference);
  }

  /** Lets sessions that have cached the table by another name see what was committed. */
  public void refreshCached() {
    CachedTables.refresh(session.catalogName(), table, below);
  }

  /**
   * The same, for the statement that begins in this thread; that of another user is refused: the
   * planner would answer it with the rights of whoever opened the table. Threads in which parts of a
   * statement run later may have begun with another user's.
   */
  public TableHandle ofCurrentUser() {
    String asking = HadoopUser.current().key();
    if (!asking.equals(opener)) {
      throw SparkErrors.unsupported(
          "A statement of " + asking + " reads or changes " + name + " as " + opener + " opened it",
          "let each user of a server name the table in his own statement, instead of a DataFrame or"
              + " view of another user");
    }
    return this;
  }

  /** What a query of the current session reads of it. */
  public Selection selection(ArrayNode filters, CaseInsensitiveStringMap options) {
    return new Selection(
        reference,
        filters,
        isCaseSensitive(),
        options.asCaseSensitiveMap(),
        IcebergSettings.now());
  }

  /** Whether names tell {@code Id} from {@code id} in the current session. */
  public static boolean isCaseSensitive() {
    return SparkSession.active().sessionState().conf().caseSensitiveAnalysis();
  }

  /** Asks the planner; what it refuses is Spark's error. */
  public <T extends Record> T ask(Request request, Class<T> kind) {
    try {
      return session.ask(catalog -> request, kind);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }

  /** Asks the planner for what comes in pages, as {@link PlannerSession} does. */
  public <P extends Record, T extends Record> T ask(
      Request request, Class<P> page, Supplier<Consumer<P>> begun, Class<T> kind) {
    try {
      return session.ask(catalog -> request, page, begun, kind);
    } catch (PlannerException e) {
      throw SparkErrors.other(e);
    }
  }
}
