package org.icecomb.spark.read;

import java.util.function.Consumer;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;

/** Builds the scan of a statement that writes files anew, and hands it to the statement's write. */
public final class RewriteScanBuilder extends IcecombScanBuilder {

  private final Consumer<RewriteScan> built;

  /**
   * @param built takes the scan
   */
  public RewriteScanBuilder(
      TableHandle table, CaseInsensitiveStringMap options, Consumer<RewriteScan> built) {
    super(table, options);
    this.built = built;
  }

  /** Only chooses files: all rows of these are read, and Spark says what becomes of each. */
  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    chooseFiles(predicates);
    return predicates;
  }

  @Override
  public Scan build() {
    RewriteScan scan = buildRewrite();
    built.accept(scan);
    return scan;
  }
}
