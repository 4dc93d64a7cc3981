package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.icecomb.spark.planner.Protocol.Repeatable;
import org.icecomb.spark.planner.Protocol.Request;

/**
 * The client of the planner: one process per Python interpreter and application, started in advance
 * or by the first request, and restarted if it died.
 *
 * <p>Each request has its own connection while it runs, so concurrent queries do not wait for each
 * other. A {@link Repeatable} request is repeated once after a lost connection; others never are,
 * because they may have been executed.
 */
public final class Planner {

  private static final long WATCH_MS = 10_000;
  private static final Map<String, Planner> PLANNERS = new ConcurrentHashMap<>();

  private final String python;
  private final AtomicLong nextId = new AtomicLong();
  private final AtomicInteger waiting = new AtomicInteger();
  private final Deque<PlannerConnection> idle = new ArrayDeque<>();
  private final ReentrantLock lock = new ReentrantLock();
  private PlannerProcess process;
  private int generation;

  private Planner(String python) {
    this.python = python;
    Thread watch = new Thread(this::watch, "icecomb-planner-watch");
    watch.setDaemon(true);
    watch.start();
  }

  /** The planner of this application that runs under the given interpreter. */
  public static Planner of(String python) {
    return PLANNERS.computeIfAbsent(python, Planner::new);
  }

  /**
   * Starts the process in a background thread. Requests wait for it; if it cannot be started, the
   * first request tries again and reports why.
   */
  public void startAhead() {
    Thread starting =
        new Thread(
            () -> {
              try {
                giveBack(take());
              } catch (IOException | PlannerException e) {
                // reported by the first request
              }
            },
            "icecomb-planner-start");
    starting.setDaemon(true);
    starting.start();
  }

  /** A factory of a request, called again if it is repeated, possibly for a new process. */
  @FunctionalInterface
  public interface Making {
    Request make();
  }

  /**
   * Sends a request and waits for the answer.
   *
   * @throws PlannerException with the planner's error; of type {@link PlannerException#LOST} if the
   *     answer never came; of type {@link PlannerException#CANCELED} if the thread was interrupted
   *     and nothing was changed
   */
  public <T extends Record> T ask(Making making, Class<T> kind) {
    return ask(making, kind, () -> Pages.GATHERED);
  }

  /**
   * Sends a request whose answer has pages, and waits for the answer after them.
   *
   * @param page the class of pages
   * @param begun supplies a consumer of the pages, again if the request is repeated
   */
  public <P extends Record, T extends Record> T ask(
      Making making, Class<P> page, Supplier<Consumer<P>> begun, Class<T> kind) {
    return ask(
        making,
        kind,
        () -> {
          Consumer<P> taker = begun.get();
          return (line, from, length) -> taker.accept(Json.as(page, line, from, length));
        });
  }

  private <T extends Record> T ask(Making making, Class<T> kind, Supplier<Pages.Taker> pages) {
    for (boolean again = false; ; again = true) {
      Request request = making.make();
      PlannerConnection connection = null;
      try {
        connection = take();
        return result(kind, exchange(connection, request, pages.get()));
      } catch (InterruptedWaitException e) {
        throw PlannerException.canceled(method(request), e);
      } catch (IOException e) {
        // Without a connection nothing was sent, so that even a change may be repeated.
        boolean repeatable = connection == null || request instanceof Repeatable;
        discard();
        if (again || !repeatable) {
          throw lost(method(request), e);
        }
      }
    }
  }

  /**
   * A number that changes whenever a new process is started: the handles of an earlier process are
   * unknown to the next.
   */
  public int generation() {
    try {
      lock.lockInterruptibly();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw PlannerException.canceled("open_catalog", e);
    }
    try {
      running();
      return generation;
    } finally {
      lock.unlock();
    }
  }

  private ObjectNode message(Request request) {
    ObjectNode message = Json.object();
    message.put("id", nextId.incrementAndGet());
    message.put("method", method(request));
    message.set("params", Json.of((Record) request));
    return message;
  }

  /** A request's method, which is named like its class. */
  private static String method(Request request) {
    return request
        .getClass()
        .getSimpleName()
        .replaceAll("(?<=.)([A-Z])", "_$1")
        .toLowerCase(Locale.ROOT);
  }

  private JsonNode exchange(PlannerConnection connection, Request request, Pages.Taker pages)
      throws IOException {
    waiting.incrementAndGet();
    boolean sent = false;
    try {
      connection.send(message(request));
      sent = true;
      JsonNode answer = connection.receive(pages);
      giveBack(connection);
      return answer;
    } catch (InterruptedWaitException e) {
      try {
        if (!sent || request instanceof Repeatable) {
          throw e;
        }
        return connection.receiveTruth();
      } catch (SocketTimeoutException unknown) {
        throw lost(method(request), unknown);
      } finally {
        connection.close();
      }
    } catch (IOException | RuntimeException e) {
      connection.close();
      throw e;
    } finally {
      waiting.decrementAndGet();
    }
  }

  private static <T extends Record> T result(Class<T> kind, JsonNode answer) throws IOException {
    JsonNode error = answer.get("error");
    if (error != null && !error.isNull()) {
      throw new PlannerException(
          List.of(Json.names(error.path("types"))),
          error.path("message").asText("The icecomb planner failed"),
          Json.textOrNull(error, "hint"),
          null);
    }
    return Json.as(kind, answer.get("result"));
  }

  private static PlannerException lost(String method, IOException cause) {
    return new PlannerException(
        List.of(PlannerException.LOST),
        "The icecomb planner was lost during " + method + ": " + cause.getMessage(),
        "Look at the driver's error output for the reason, and at the table before you repeat a change.",
        cause);
  }

  /** The process, started if there is none; the lock is held. */
  private PlannerProcess running() {
    if (process == null || !process.isAlive()) {
      closeIdle();
      process = PlannerProcess.start(python);
      generation++;
    }
    return process;
  }

  private PlannerConnection take() throws IOException {
    PlannerProcess current;
    try {
      // Its holder may be starting the process, which takes a while.
      lock.lockInterruptibly();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedWaitException();
    }
    try {
      current = running();
      PlannerConnection connection = idle.poll();
      if (connection != null) {
        return connection;
      }
    } finally {
      lock.unlock();
    }
    return new PlannerConnection(current, greetedBy(current));
  }

  /** Connects; a process that does not greet within the limit is killed, to be replaced. */
  private static PlannerSocket greetedBy(PlannerProcess process) throws IOException {
    try {
      return process.connect();
    } catch (IOException e) {
      if (Thread.currentThread().isInterrupted()) {
        throw e;
      }
      process.kill();
      throw e;
    }
  }

  private void giveBack(PlannerConnection connection) {
    lock.lock();
    try {
      if (connection.process() == process) {
        idle.push(connection);
      } else {
        connection.close();
      }
    } finally {
      lock.unlock();
    }
  }

  /**
   * Checks periodically, while a thread waits for an answer, whether the process still greets; one
   * that hangs is killed, which ends the wait. An answer itself may take any length of time.
   */
  private void watch() {
    while (true) {
      try {
        Thread.sleep(Math.min(WATCH_MS, PlannerProcess.patienceMs()));
      } catch (InterruptedException e) {
        return;
      }
      PlannerProcess watched;
      lock.lock();
      try {
        watched = process;
      } finally {
        lock.unlock();
      }
      if (waiting.get() > 0 && watched != null && watched.isAlive()) {
        try {
          greetedBy(watched).close();
        } catch (IOException e) {
          System.err.println("icecomb: the planner does not answer and was ended: " + e);
        }
      }
    }
  }

  /** Discards idle connections after a failure: they may be broken, too. */
  private void discard() {
    lock.lock();
    try {
      closeIdle();
      if (process != null && process.endsSoon()) {
        process.stop();
        process = null;
      }
    } finally {
      lock.unlock();
    }
  }

  private void closeIdle() {
    for (PlannerConnection connection = idle.poll(); connection != null; connection = idle.poll()) {
      connection.close();
    }
  }
}
