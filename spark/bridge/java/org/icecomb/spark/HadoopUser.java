package org.icecomb.spark;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.apache.hadoop.security.UserGroupInformation;
import org.apache.hadoop.security.token.Token;
import org.icecomb.spark.planner.Protocol.Identity;

/** Hadoop's user of the current thread: the application's own, or whom a server acts for. */
final class HadoopUser {

  private HadoopUser() {}

  /** Who it is, and the tokens it has now; Hadoop renews and replaces them in the background. */
  static Identity current() {
    try {
      return of(UserGroupInformation.getCurrentUser());
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
