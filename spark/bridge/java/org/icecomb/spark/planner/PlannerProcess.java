package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * The Python child process that makes all decisions about tables.
 *
 * <p>It ends when its standard input is closed, which the operating system does when this JVM ends
 * for any reason. Its port is on the loopback interface only, and it serves only clients that prove
 * to know the token in its environment. It proves that, too: when it has died, a process of another
 * user may listen at its port.
 */
final class PlannerProcess {

  /** Nothing is imported from the working directory, which may hold a stranger's json.py. */
  private static final String START =
      "import sys; sys.path[:] = [each for each in sys.path if each not in ('', '.')]; "
          + "from runpy import run_module; "
          + "run_module('icecomb.spark.planner', None, '__main__', True)";

  private static final int START_SECONDS = 60;
  private static final int CONNECT_MS = 5_000;
  private static final int GREETING_MS = 10_000;
  private static final int PAUSE_MS = 200;
  private static final int NONCE_BYTES = 16;
  private static final int LONGEST_PROOF = 1_000;
  private static final int DYING_MS = 1_000;
  private static final int KEPT_ERROR_CHARS = 4_000;

  private final Process process;
  private final String token;
  private final int port;

  private PlannerProcess(Process process, String token, int port) {
    this.process = process;
    this.token = token;
    this.port = port;
  }

  /**
   * Starts a planner and waits until it listens.
   *
   * @param python the interpreter that has icecomb installed
   * @throws PlannerException if it cannot be started, with its output
   */
  static PlannerProcess start(String python) {
    String token = random(24);
    ProcessBuilder builder = new ProcessBuilder(python, "-c", START);
    builder.environment().put("ICECOMB_PLANNER_TOKEN", token);
    // the processes that it starts import nothing from there, either (Python 3.11)
    builder.environment().put("PYTHONSAFEPATH", "1");
    builder.environment().computeIfPresent("PYTHONPATH", (name, path) -> withoutHere(path));
    Process process;
    try {
      process = builder.start();
    } catch (IOException e) {
      throw failed("cannot start " + python + ": " + e.getMessage(), e);
    }
    StringBuffer errors = new StringBuffer();
    Thread copied = daemon("icecomb-planner-stderr", () -> copy(process.getErrorStream(), errors));
    BufferedReader out =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    CompletableFuture<String> firstLine = new CompletableFuture<>();
    daemon(
        "icecomb-planner-stdout",
        () -> {
          try {
            firstLine.complete(out.readLine());
            for (String line = out.readLine(); line != null; line = out.readLine()) {
              System.err.println(line);
            }
          } catch (IOException e) {
            firstLine.completeExceptionally(e);
          }
        });
    return new PlannerProcess(
        process, token, awaitPort(python, process, firstLine, errors, copied));
  }

  /** A PYTHONPATH without the working directory, for which empty entries stand, too. */
  private static String withoutHere(String path) {
    String kept =
        Arrays.stream(path.split(File.pathSeparator))
            .filter(each -> !Path.of(each).normalize().toString().isEmpty())
            .collect(Collectors.joining(File.pathSeparator));
    return kept.isEmpty() ? null : kept;
  }

  private static int awaitPort(
      String python,
      Process process,
      CompletableFuture<String> firstLine,
      StringBuffer errors,
      Thread copied) {
    try {
      String line = firstLine.get(START_SECONDS, TimeUnit.SECONDS);
      if (line == null) {
        process.waitFor(5, TimeUnit.SECONDS);
        // its output may not have arrived yet
        copied.join(TimeUnit.SECONDS.toMillis(5));
        throw failed(python + " ended at once. It printed:\n" + errors, null);
      }
      JsonNode greeting = Json.parse(line);
      if (greeting.path("protocol").asInt() != Protocol.VERSION) {
        process.destroyForcibly();
        throw new PlannerException(
            List.of(PlannerException.START),
            "The icecomb planner does not fit icecomb's jar: "
                + python
                + " has icecomb "
                + greeting.path("version").asText("of another version")
                + " (protocol "
                + greeting.path("protocol").asText()
                + "), the jar another (protocol "
                + Protocol.VERSION
                + ")",
            "Give Spark the jar that this Python's `icecomb spark-conf` names, or let "
                + "spark.sql.catalog.<name>.python name the Python that the jar came with.",
            null);
      }
      return greeting.get("port").asInt();
    } catch (TimeoutException e) {
      process.destroyForcibly();
      throw failed(python + " did not answer within " + START_SECONDS + " s. It printed:\n" + errors, e);
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
      throw failed("interrupted while waiting for " + python, e);
    } catch (ExecutionException | IllegalArgumentException e) {
      process.destroyForcibly();
      throw failed(python + " gave no port. It printed:\n" + errors, e);
    }
  }

  private static PlannerException failed(String reason, Throwable cause) {
    return new PlannerException(
        List.of(PlannerException.START),
        "The icecomb planner does not run: " + reason,
        "Set spark.sql.catalog.<name>.python or ICECOMB_PYTHON to a Python that has icecomb.",
        cause);
  }

  boolean isAlive() {
    return process.isAlive();
  }

  /** Whether the process ends soon: one that was killed loses its connections a moment earlier. */
  boolean endsSoon() {
    try {
      return process.waitFor(DYING_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return !process.isAlive();
    }
  }

  /**
   * A connection on which the planner has sent its greeting, and no request was sent yet.
   *
   * @throws IOException if there is none within the time limit; then no request was sent
   * @throws InterruptedWaitException if the thread is interrupted
   */
  PlannerSocket connect() throws IOException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(patienceMs());
    while (true) {
      IOException failure;
      try {
        return greeted();
      } catch (InterruptedWaitException e) {
        throw e;
      } catch (IOException e) {
        failure = e;
      }
      if (!process.isAlive() || System.nanoTime() > deadline) {
        throw failure;
      }
      pause();
    }
  }

  /** Milliseconds after which a planner that does not greet counts as lost. */
  static long patienceMs() {
    return Long.getLong("icecomb.planner.patience.ms", 60_000);
  }

  private PlannerSocket greeted() throws IOException {
    PlannerSocket socket = new PlannerSocket(port, CONNECT_MS);
    try {
      if (!process.isAlive()) {
        throw new IOException("the planner has ended");
      }
      long patience = Math.min(GREETING_MS, patienceMs());
      String mine = random(NONCE_BYTES);
      socket.write(ascii(mine + "\n"));
      byte[] told = socket.readLine(patience, LONGEST_PROOF);
      String theirs = new String(told, 0, Math.min(told.length, mine.length()), StandardCharsets.US_ASCII);
      if (!MessageDigest.isEqual(told, ascii(theirs + proof("planner", mine, theirs)))) {
        throw new IOException("another process answers at the planner's port");
      }
      socket.write(ascii(proof("bridge", mine, theirs) + "\n"));
      // After the greeting, the periodic check of the process ends a wait for a hanging planner.
      socket.readLine(patience);
      return socket;
    } catch (IOException e) {
      socket.close();
      throw e;
    }
  }

  /** The proof that one side knows the token, valid on one connection. */
  private String proof(String side, String mine, String theirs) {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(ascii(token), "HmacSHA256"));
      return HexFormat.of().formatHex(mac.doFinal(ascii(side + " " + mine + " " + theirs)));
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private static String random(int count) {
    byte[] bytes = new byte[count];
    new SecureRandom().nextBytes(bytes);
    return HexFormat.of().formatHex(bytes);
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  private static void pause() throws InterruptedWaitException {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new InterruptedWaitException();
    }
  }

  /** Kills a process that does not answer any more; waiting threads get an error. */
  void kill() {
    process.destroyForcibly();
  }

  /** Lets the process end by itself, and kills it if it does not. */
  void stop() {
    try {
      process.getOutputStream().close();
    } catch (IOException e) {
      process.destroy();
    }
  }

  private static void copy(InputStream stream, StringBuffer kept) {
    try (BufferedReader reader =
        new BufferedReader(new InputStreamReader(stream, StandardCharsets.UTF_8))) {
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        System.err.println(line);
        if (kept.length() < KEPT_ERROR_CHARS) {
          kept.append(line).append('\n');
        }
      }
    } catch (IOException e) {
      kept.append(e);
    }
  }

  private static Thread daemon(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    thread.start();
    return thread;
  }
}
