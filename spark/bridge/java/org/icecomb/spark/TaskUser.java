package org.icecomb.spark;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.security.PrivilegedExceptionAction;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.icecomb.spark.planner.Protocol.Identity;

/**
 * The user on whose behalf tasks open files. Executors run as the application's user; if a server
 * impersonates others and services do not require authentication, its tasks do so, too.
 *
 * @param user the user; null for the one who started the application
 * @param realUser the server that acts for this user, or null
 */
public record TaskUser(String user, String realUser) implements Serializable {

  private static final Map<TaskUser, UserGroupInformation> KNOWN = new ConcurrentHashMap<>();

  /** The current thread's user; null if tasks run as that user anyway. */
  public static TaskUser current() {
    Identity identity = HadoopUser.current();
    SparkContext context = SparkSession.active().sparkContext();
    if (identity.login()) {
      // its threads may have been started on behalf of another user
      return context.isLocal() ? new TaskUser(null, null) : null;
    }
    boolean own = identity.user().equals(context.sparkUser());
    return own && !context.isLocal() ? null : new TaskUser(identity.user(), identity.realUser());
  }

  /**
   * Refuses users that executors cannot act for: they do not get the tokens of others.
   *
   * @param user the result of {@link #current}
   */
  public static void check(TaskUser user) {
    if (user != null && user.user() != null && UserGroupInformation.isSecurityEnabled()) {
      String own = SparkSession.active().sparkContext().sparkUser();
      if (!user.user().equals(own)) {
        throw SparkErrors.unsupported(
            "The executors of this application are "
                + own
                + " to a secured cluster, and cannot read or write files as "
                + user.user(),
            "Start an application for each user: spark-submit --proxy-user " + user.user());
      }
    }
  }

  /** Whether the current thread already acts for this user. */
  public boolean isCurrent() {
    try {
      UserGroupInformation current = UserGroupInformation.getCurrentUser();
      return user == null
          ? current.equals(UserGroupInformation.getLoginUser())
          : current.getShortUserName().equals(user);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Work done on behalf of a user. */
  @FunctionalInterface
  public interface Work<T> {
    T run() throws IOException;
  }

  /** Does work on behalf of this user. */
  public <T> T run(Work<T> work) throws IOException {
    try {
      PrivilegedExceptionAction<T> action = work::run;
      return information().doAs(action);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException(e);
    }
  }

  /** One object for each user, because connections are shared by those with the same object. */
  private UserGroupInformation information() throws IOException {
    if (user == null) {
      return UserGroupInformation.getLoginUser();
    }
    return KNOWN.computeIfAbsent(
        this,
        each ->
            realUser == null
                ? UserGroupInformation.createRemoteUser(user)
                : UserGroupInformation.createProxyUser(
                    user, UserGroupInformation.createRemoteUser(realUser)));
  }
}
