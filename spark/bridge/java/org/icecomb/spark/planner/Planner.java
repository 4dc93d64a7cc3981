package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The way to ask the planner: one process per Python interpreter and application, started at the
 * first question and started again when it died.
 *
 * <p>Each request has a connection for itself while it runs, so concurrent queries do not wait for
 * each other. A request that only reads is repeated once after a lost connection; one that changes
 * something never is, because it may have been carried out.
 */
public final class Planner {

  private static final Map<String, Planner> PLANNERS = new ConcurrentHashMap<>();
  private static final Set<String> REPEATABLE =
      new HashSet<>(
          Arrays.asList(
              "open_catalog", "list_namespaces", "load_namespace", "list_tables", "table_exists",
              "load_table", "plan_scan", "begin_write", "abort_write", "stage_table", "abort_staged",
              "can_delete_where"));

  private final String python;
  private final AtomicLong nextId = new AtomicLong();
  private final Deque<Connection> idle = new ArrayDeque<>();
  private PlannerProcess process;
  private int generation;

  private Planner(String python) {
    this.python = python;
  }

  /** The planner of this application that runs under the given interpreter. */
  public static Planner of(String python) {
    return PLANNERS.computeIfAbsent(python, Planner::new);
  }

  /** Makes the parameters of a request; asked again when the request is repeated in a new process. */
  @FunctionalInterface
  public interface Parameters {
    ObjectNode make();
  }

  /**
   * Asks and waits for the answer.
   *
   * @throws PlannerException with the planner's error, or of type {@link PlannerException#LOST} when
   *     the answer never came
   */
  public JsonNode ask(String method, Parameters parameters) {
    try {
      return attempt(method, parameters.make());
    } catch (IOException e) {
      discard();
      if (!REPEATABLE.contains(method)) {
        throw lost(method, e);
      }
    }
    try {
      return attempt(method, parameters.make());
    } catch (IOException e) {
      discard();
      throw lost(method, e);
    }
  }

  /**
   * A number that changes whenever a new process is started: what an earlier process handed out as
   * a handle means nothing to the next.
   */
  public synchronized int generation() {
    running();
    return generation;
  }

  private JsonNode attempt(String method, ObjectNode parameters) throws IOException {
    long id = nextId.incrementAndGet();
    ObjectNode request = Json.object();
    request.put("id", id);
    request.put("method", method);
    request.set("params", parameters);
    Connection connection = take();
    JsonNode answer;
    try {
      answer = connection.exchange(Json.text(request));
    } catch (IOException | RuntimeException e) {
      connection.close();
      throw e;
    }
    giveBack(connection);
    JsonNode error = answer.get("error");
    if (error != null && !error.isNull()) {
      throw new PlannerException(
          error.path("type").asText("IcecombError"),
          error.path("message").asText(method + " failed"),
          Json.textOrNull(error, "hint"),
          null);
    }
    return answer.get("result");
  }

  private static PlannerException lost(String method, IOException cause) {
    return new PlannerException(
        PlannerException.LOST,
        "The icecomb planner was lost during " + method + ": " + cause.getMessage(),
        "look at the driver's error output for the reason, and at the table before repeating a change",
        cause);
  }

  private synchronized PlannerProcess running() {
    if (process == null || !process.isAlive()) {
      closeIdle();
      process = PlannerProcess.start(python);
      generation++;
    }
    return process;
  }

  private Connection take() throws IOException {
    PlannerProcess current;
    synchronized (this) {
      current = running();
      Connection connection = idle.poll();
      if (connection != null) {
        return connection;
      }
    }
    return new Connection(current, current.connect());
  }

  private synchronized void giveBack(Connection connection) {
    if (connection.process == process) {
      idle.push(connection);
    } else {
      connection.close();
    }
  }

  /** After a failure: idle connections may be as broken as the one that failed. */
  private synchronized void discard() {
    closeIdle();
    if (process != null && process.endsSoon()) {
      process.stop();
      process = null;
    }
  }

  private void closeIdle() {
    for (Connection connection = idle.poll(); connection != null; connection = idle.poll()) {
      connection.close();
    }
  }

  /** One socket, used by one request at a time. */
  private static final class Connection implements Closeable {

    private final PlannerProcess process;
    private final Socket socket;
    private final BufferedReader in;
    private final OutputStream out;

    Connection(PlannerProcess process, Socket socket) throws IOException {
      this.process = process;
      this.socket = socket;
      this.in =
          new BufferedReader(
              new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8), 1 << 16);
      this.out = socket.getOutputStream();
    }

    JsonNode exchange(String request) throws IOException {
      out.write((request + "\n").getBytes(StandardCharsets.UTF_8));
      out.flush();
      String line = in.readLine();
      if (line == null) {
        throw new IOException("the connection was closed");
      }
      return Json.parse(line);
    }

    @Override
    public void close() {
      try {
        socket.close();
      } catch (IOException e) {
        // Nothing is lost: the connection is not used again.
      }
    }
  }
}
