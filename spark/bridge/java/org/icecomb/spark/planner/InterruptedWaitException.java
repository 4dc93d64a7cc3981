package org.icecomb.spark.planner;

import java.io.IOException;

/** Thrown if the thread that waits for the planner is interrupted; it still is. */
final class InterruptedWaitException extends IOException {

  InterruptedWaitException() {
    super("the waiting thread was interrupted");
  }
}
