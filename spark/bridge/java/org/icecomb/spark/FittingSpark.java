package org.icecomb.spark;

import java.net.URL;
import java.security.CodeSource;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A check that this jar was compiled for the running Spark, by the jar's name. */
final class FittingSpark {

  private static final Pattern JAR =
      Pattern.compile(".*/icecomb-spark-(\\d+\\.\\d+)_(\\d+\\.\\d+)[^/]*\\.jar");

  private FittingSpark() {}

  /** The problem and a hint; null if there is none, or the jar has another name. */
  static String complaint() {
    CodeSource source = FittingSpark.class.getProtectionDomain().getCodeSource();
    URL jar = source == null ? null : source.getLocation();
    Matcher name = JAR.matcher(jar == null ? "" : jar.getPath());
    String spark = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    String library = scala.util.Properties.versionNumberString();
    if (!name.matches()
        || (spark.startsWith(name.group(1) + ".") && library.startsWith(name.group(2) + "."))) {
      return null;
    }
    return String.format(
        "This is Spark %s for Scala %s, and %s is icecomb's jar for Spark %s for Scala %s%n"
            + "  hint: Name the jar for this Spark in spark.jars: `icecomb spark-conf --spark-home %s`"
            + " prints it, or says which Sparks this icecomb knows",
        spark,
        library,
        jar.getPath(),
        name.group(1),
        name.group(2),
        System.getenv().getOrDefault("SPARK_HOME", "<its folder>"));
  }
}
