package org.icecomb.spark.planner;

import java.io.IOException;

/** Starts a planner with an interpreter, and prints whether it greets. */
final class Greeted {
  public static void main(String[] args) {
    PlannerProcess process = PlannerProcess.start(args[0]);
    try {
      process.connect().close();
      System.out.println("greeted");
    } catch (IOException e) {
      System.out.println(e.getMessage());
    }
    process.kill();
  }
}
