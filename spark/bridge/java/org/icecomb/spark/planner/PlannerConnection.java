package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Closeable;
import java.io.IOException;

/** One connection to the planner, used by one request at a time. */
final class PlannerConnection implements Closeable {

  /** Milliseconds that an interrupted thread waits for the outcome of a change. */
  private static final long TRUTH_MS = 3_000;

  private final PlannerProcess process;
  private final PlannerSocket socket;

  /**
   * @param socket a connection on which only the planner's greeting was received
   */
  PlannerConnection(PlannerProcess process, PlannerSocket socket) {
    this.process = process;
    this.socket = socket;
  }

  /** The process at its other end. */
  PlannerProcess process() {
    return process;
  }

  /**
   * Sends a whole request: the planner ignores one that is cut off.
   *
   * @throws InterruptedWaitException if the thread is interrupted; then nothing was done
   */
  void send(ObjectNode request) throws IOException {
    Pages.write(request, "params", socket::write);
  }

  /**
   * Waits for the answer without a time limit.
   *
   * @throws InterruptedWaitException if the thread is interrupted
   */
  ObjectNode receive(Pages.Taker pages) throws IOException {
    return Pages.read("result", () -> socket.readLine(PlannerSocket.FOREVER), pages);
  }

  /**
   * The answer to a change whose thread was interrupted: the planner cancels the change if it can,
   * and reports its outcome.
   *
   * @throws IOException if it does not report in time
   */
  ObjectNode receiveTruth() throws IOException {
    boolean interrupted = Thread.interrupted();
    try {
      socket.endAsking();
      return Pages.read("result", () -> socket.readLine(TRUTH_MS), Pages.GATHERED);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  @Override
  public void close() {
    socket.close();
  }
}
