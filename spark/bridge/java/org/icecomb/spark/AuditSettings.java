package org.icecomb.spark;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.internal.SQLConf;
import org.icecomb.spark.planner.Protocol.Audit;

/** The session's settings for write-audit-publish; the planner interprets them for each table. */
public final class AuditSettings {

  private AuditSettings() {}

  /** The current settings of the session that runs the statement. */
  public static Audit now() {
    SQLConf conf = SparkSession.active().sessionState().conf();
    return new Audit(setting(conf, "spark.wap.id"), setting(conf, "spark.wap.branch"));
  }

  private static String setting(SQLConf conf, String key) {
    return conf.contains(key) ? conf.getConfString(key) : null;
  }
}
