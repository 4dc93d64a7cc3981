package org.icecomb.spark.planner;

import java.io.IOException;

/** The thread that waited for the planner was interrupted; it still is. */
final class InterruptedWaitException extends IOException {

  InterruptedWaitException() {
    super("the waiting thread was interrupted");
  }
}
