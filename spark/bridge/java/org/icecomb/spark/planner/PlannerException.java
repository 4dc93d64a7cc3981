package org.icecomb.spark.planner;

import java.util.List;

/**
 * The planner's error, or the reason why no answer came.
 *
 * <p>{@link #types()} are the names of the Python error's classes, by which the catalog chooses the
 * exception that users and Spark's own code expect.
 */
public final class PlannerException extends RuntimeException {

  /** Type of the error if the process or its connection was lost during a request. */
  public static final String LOST = "PlannerLost";

  /** Type of the error if the waiting thread was interrupted, and nothing was changed. */
  public static final String CANCELED = "OperationCanceledError";

  /** Type of the error if no process could be started. */
  public static final String START = "PlannerStartError";

  private final List<String> types;
  private final String hint;

  /**
   * @param types the names of the error's classes, the most specific first
   */
  public PlannerException(List<String> types, String message, String hint, Throwable cause) {
    super(message, cause);
    this.types = types;
    this.hint = hint;
  }

  /**
   * The error of a thread that was interrupted before anything was changed.
   *
   * @param method the method of the request that was sent, or about to be
   */
  public static PlannerException canceled(String method, Exception cause) {
    return new PlannerException(
        List.of(CANCELED),
        "The statement was canceled while icecomb's planner was asked to " + method.replace('_', ' '),
        "Nothing was changed; run it again if it is still wanted.",
        cause);
  }

  public List<String> types() {
    return types;
  }

  /** The most specific class of the error. */
  public String type() {
    return types.get(0);
  }

  /** The message and, on a second line, what the user can do next. */
  public String explanation() {
    return hint == null || hint.isEmpty() ? getMessage() : getMessage() + "\n  hint: " + hint;
  }

  /** Whether a commit that failed with this error may nevertheless have happened. */
  public boolean leavesCommitUnknown() {
    return types.contains(LOST) || types.contains("CommitStateUnknownError");
  }
}
