package org.icecomb.spark;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.apache.spark.SparkContext;
import org.icecomb.spark.planner.Protocol.Identity;

/** The Hadoop user of the current thread: the application's own, or one a server impersonates. */
final class HadoopUser {

  private HadoopUser() {}

  /** The user and its current tokens, which Hadoop renews and replaces in the background. */
  static Identity current() {
    try {
      return of(UserGroupInformation.getCurrentUser());
    } catch (IOException e) {
      throw new UncheckedIOException("Hadoop does not know who runs this application", e);
    }
  }

  /** A key that identifies a user. */
  static String key(Identity user) {
    return user.realUser() == null ? user.user() : user.user() + " by " + user.realUser();
  }

  /**
   * The keytab with which Spark gets its tickets ({@code spark.kerberos.keytab}) on this host, or
   * null.
   */
  static String keytab(SparkContext context) {
    try {
      String keytab = context.conf().get("spark.kerberos.keytab", null);
      if (keytab == null
          || !UserGroupInformation.isSecurityEnabled()
          || !UserGroupInformation.isLoginKeytabBased()) {
        return null;
      }
      // in cluster mode it is in the driver's working directory
      File file = new File(new Path(keytab).toUri().getPath()).getAbsoluteFile();
      return file.canRead() ? file.getPath() : null;
    } catch (IOException e) {
      throw new UncheckedIOException("Hadoop does not know who runs this application", e);
    }
  }

  /** The Kerberos principal of the user who started the application. */
  static String principal() {
    try {
      return UserGroupInformation.getLoginUser().getUserName();
    } catch (IOException e) {
      throw new UncheckedIOException("Hadoop does not know who runs this application", e);
    }
  }

  private static Identity of(UserGroupInformation user) throws IOException {
    List<String> tokens = new ArrayList<>();
    for (Token<?> token : user.getCredentials().getAllTokens()) {
      tokens.add(token.encodeToUrlString());
    }
    Collections.sort(tokens);
    UserGroupInformation real = user.getRealUser();
    return new Identity(
        user.getShortUserName(),
        real == null ? null : real.getShortUserName(),
        user.equals(UserGroupInformation.getLoginUser()),
        UserGroupInformation.isSecurityEnabled(),
        tokens);
  }
}
