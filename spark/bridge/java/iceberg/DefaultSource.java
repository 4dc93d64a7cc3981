package iceberg;

import org.icecomb.spark.TableSource;

/**
 * The source {@code format("iceberg")} if Iceberg's own runtime is not on the class path. The
 * runtime registers that name; Spark looks for this class only if nobody did, and would refuse two
 * registrations.
 */
public final class DefaultSource extends TableSource {}
