package org.icecomb.spark;

import java.io.IOException;
import java.io.Serializable;
import java.security.PrivilegedExceptionAction;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SparkSession;
import org.icecomb.spark.planner.Protocol.Identity;

/**
 * In whose name tasks open files. Executors run as the application's user; where a server acts for
 * others and services take the word of whoever asks, its tasks do, too.
 *
 * @param user null for who started the application
 * @param realUser the server that acts for this user, or null
 */
public record TaskUser(String user, String realUser) implements Serializable {

  private static final Map<TaskUser, UserGroupInformation> KNOWN = new ConcurrentHashMap<>();

  /** Of the current thread's user; null where tasks have that name by themselves. */
  public static TaskUser current() {
    Identity identity = HadoopUser.current();
    SparkContext context = SparkSession.active().sparkContext();
    if (identity.login()) {
      // its threads may have begun with what was done for somebody else
      return context.isLocal() ? new TaskUser(null, null) : null;
    }
    boolean own = identity.user().equals(context.sparkUser());
    return own && !context.isLocal() ? null : new TaskUser(identity.user(), identity.realUser());
  }

  /**
   * Refuses what executors cannot do: tokens of others are not handed to them.
   *
   * @param user as {@link #current} gave it
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
            "start an application for each user: spark-submit --proxy-user " + user.user());
      }
    }
  }

  /** Whether the current thread acts in this name already. */
  public boolean isCurrent() throws IOException {
    UserGroupInformation current = UserGroupInformation.getCurrentUser();
    return user == null
        ? current.equals(UserGroupInformation.getLoginUser())
        : current.getShortUserName().equals(user);
  }

  /** What is done in this name. */
  @FunctionalInterface
  public interface Work<T> {
    T run() throws IOException;
  }

  /** Does work in this name. */
  public <T> T run(Work<T> work) throws IOException {
    try {
      PrivilegedExceptionAction<T> action = work::run;
      return information().doAs(action);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException(e);
    }
  }

  /** One for each user: connections are shared by those who have the same. */
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
