package icecomb;

import org.icecomb.spark.TableSource;

/** The source {@code format("icecomb")}: Spark finds this class by name, without registration. */
public final class DefaultSource extends TableSource {}
