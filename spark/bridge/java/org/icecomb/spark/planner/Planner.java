package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.net.SocketTimeoutException;
import java.util.ArrayDeque;
import java.util.Deque;
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
 * The way to ask the planner: one process per Python interpreter and application, started ahead or at
 * the first question, and started again when it died.
 *
 * <p>Each request has a connection for itself while it runs, so concurrent queries do not wait for
 * each other. A {@link Repeatable} request is repeated once after a lost connection; another never is,
 * because it may have been carried out.
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
   * Starts the process in a thread of its own. Who asks meanwhile waits for it; where it cannot be
   * started, the first question tries again, and says why.
   */
  public void startAhead() {
    Thread starting =
        new Thread(
            () -> {
              try {
                giveBack(take());
              } catch (IOException | PlannerException e) {
                // told to whoever asks first
              }
            },
            "icecomb-planner-start");
    starting.setDaemon(true);
    starting.start();
  }

  /** Makes a request; asked again when it is repeated, which may be in a new process. */
  @FunctionalInterface
  public interface Making {
    Request make();
  }

  /**
   * Asks and waits for the answer.
   *
   * @throws PlannerException with the planner's error; of type {@link PlannerException#LOST} when the
   *     answer never came; of type {@link PlannerException#CANCELLED} when the thread was
   *     interrupted and nothing was changed
   */
  public <T extends Record> T ask(Making making, Class<T> kind) {
    return ask(making, kind, () -> Pages.GATHERED);
  }

  /**
   * Asks for what comes in pages, and waits for the answer after them.
   *
   * @param page what each page is
   * @param begun gives what takes the pages; asked again when the request is repeated
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
        throw PlannerException.cancelled(method(request), e);
      } catch (IOException e) {
        // Without a connection nothing was sent, so that even a change may be asked for again.
        boolean repeatable = connection == null || request instanceof Repeatable;
        discard();
        if (again || !repeatable) {
          throw lost(method(request), e);
        }
      }
    }
  }

  /**
   * A number that changes whenever a new process is started: what an earlier process handed out as
   * a handle means nothing to the next.
   */
  public int generation() {
    try {
      lock.lockInterruptibly();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw PlannerException.cancelled("open_catalog", e);
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

  /** A request's class is named as its method. */
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
          error.path("type").asText("IcecombError"),
          error.path("message").asText("The icecomb planner failed"),
          Json.textOrNull(error, "hint"),
          null);
    }
    return Json.as(kind, answer.get("result"));
  }

  private static PlannerException lost(String method, IOException cause) {
    return new PlannerException(
        PlannerException.LOST,
        "The icecomb planner was lost during " + method + ": " + cause.getMessage(),
        "look at the driver's error output for the reason, and at the table before repeating a change",
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
      // Whoever holds it may be starting the process, which takes a while.
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

  /** A process that greets nobody for so long serves nobody: it is ended, another one can help. */
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
   * While somebody waits for an answer, looks every now and then whether the process still greets;
   * one that hangs is ended, which ends the waiting. An answer itself may take as long as it likes.
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

  /** After a failure: idle connections may be as broken as the one that failed. */
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
