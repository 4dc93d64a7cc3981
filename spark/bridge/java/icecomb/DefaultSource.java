package icecomb;

import org.icecomb.spark.TableSource;

/** {@code format("icecomb")}: Spark looks for this name where no source is registered under it. */
public final class DefaultSource extends TableSource {}
