package org.icecomb.spark.read;

import java.util.function.Consumer;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;

/** The builder of a scan by a statement that rewrites files; passes it to the statement's write. */
public final class RewriteScanBuilder extends IcecombScanBuilder {

  private final Consumer<RewriteScan> built;

  /**
   * @param built the consumer of the scan
   */
  public RewriteScanBuilder(
      TableHandle table, CaseInsensitiveStringMap options, Consumer<RewriteScan> built) {
    super(table, options);
    this.built = built;
  }

  @Override
  public Scan build() {
    RewriteScan scan = buildRewrite();
    built.accept(scan);
    return scan;
  }
}
