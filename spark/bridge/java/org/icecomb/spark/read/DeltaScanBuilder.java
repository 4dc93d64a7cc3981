package org.icecomb.spark.read;

import java.util.function.Consumer;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;

/** Builds the scan of a statement that deletes rows by position, and hands it to its write. */
public final class DeltaScanBuilder extends IcecombScanBuilder {

  private final Consumer<DeltaScan> built;

  /**
   * @param built takes the scan
   */
  public DeltaScanBuilder(
      TableHandle table, CaseInsensitiveStringMap options, Consumer<DeltaScan> built) {
    super(table, options);
    this.built = built;
  }

  @Override
  public Scan build() {
    DeltaScan scan = buildDelta();
    built.accept(scan);
    return scan;
  }
}
