package org.icecomb.spark.source;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.internal.SQLConf;
import org.icecomb.spark.SparkErrors;

/** A session's setting for an optimization that by default is applied if it helps. */
enum Choice {
  AUTO,
  ALWAYS,
  NEVER;

  static Choice of(String setting) {
    String found = SQLConf.get().getConfString(setting, AUTO.name()).toUpperCase(Locale.ROOT);
    List<String> known = Arrays.stream(values()).map(Enum::name).toList();
    if (!known.contains(found)) {
      throw SparkErrors.unsupported(
          setting + " is " + found.toLowerCase(Locale.ROOT),
          "Set it to auto, always or never, or unset it.");
    }
    return valueOf(found);
  }
}
