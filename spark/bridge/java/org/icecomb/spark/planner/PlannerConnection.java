package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.Closeable;
import java.io.IOException;

/** One connection to the planner, used by one request at a time. */
final class PlannerConnection implements Closeable {

  /** How long an interrupted thread waits to be told what became of a change. */
  private static final long TRUTH_MS = 3_000;

  private final PlannerProcess process;
  private final PlannerSocket socket;

  /**
   * @param socket a connection on which the planner has sent its greeting, and nothing after it
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
   * Sends a request, all of it: of one that was cut off the planner does nothing.
   *
   * @throws InterruptedWaitException when the thread is interrupted; nothing was done then
   */
  void send(ObjectNode request) throws IOException {
    Pages.write(request, "params", socket::write);
  }

  /**
   * Waits for the answer, however long that takes.
   *
   * @throws InterruptedWaitException when the thread is interrupted
   */
  ObjectNode receive(Pages.Taker pages) throws IOException {
    return Pages.read("result", () -> socket.readLine(PlannerSocket.FOREVER), pages);
  }

  /**
   * The answer to a change whose thread was interrupted: the planner is told to give up where it
   * can, and says what became of the change.
   *
   * @throws IOException when it does not say so soon
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
