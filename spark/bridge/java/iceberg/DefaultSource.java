package iceberg;

import org.icecomb.spark.TableSource;

/**
 * {@code format("iceberg")} where Iceberg's own runtime is not on the class path. That one is
 * registered under the name, and Spark looks for this class only where none is: two that are
 * registered alike it would refuse.
 */
public final class DefaultSource extends TableSource {}
