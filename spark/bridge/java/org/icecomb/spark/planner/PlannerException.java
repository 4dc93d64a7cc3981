package org.icecomb.spark.planner;

/**
 * What the planner answered instead of a result, or why no answer came.
 *
 * <p>{@link #type()} is the name of the Python error class, by which the catalog chooses the Spark
 * exception that users and Spark's own code expect.
 */
public final class PlannerException extends RuntimeException {

  /** Type of the error when the process or its connection was lost in the middle of a request. */
  public static final String LOST = "PlannerLost";

  /** Type of the error when the thread that waited was interrupted, and nothing was changed. */
  public static final String CANCELLED = "OperationCancelledError";

  /** Type of the error when no process could be started. */
  public static final String START = "PlannerStartError";

  private final String type;
  private final String hint;

  public PlannerException(String type, String message, String hint, Throwable cause) {
    super(message, cause);
    this.type = type;
    this.hint = hint;
  }

  /**
   * The error of a thread that was interrupted before anything was changed.
   *
   * @param method what the planner was asked, or was about to be
   */
  public static PlannerException cancelled(String method, Exception cause) {
    return new PlannerException(
        CANCELLED,
        "The statement was cancelled while icecomb's planner was asked to " + method.replace('_', ' '),
        "nothing was changed; run it again if it is still wanted",
        cause);
  }

  public String type() {
    return type;
  }

  /** The message and, on a second line, what the user can do next. */
  public String explanation() {
    return hint == null || hint.isEmpty() ? getMessage() : getMessage() + "\n  hint: " + hint;
  }

  /** Whether a commit that failed with this error may nevertheless have happened. */
  public boolean leavesCommitUnknown() {
    return type.equals(LOST) || type.equals("CommitStateUnknownError");
  }
}
