package org.icecomb.spark.read;

import java.util.function.Consumer;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;

/** The builder of a scan by a statement that deletes rows by position; passes it to its write. */
public final class DeltaScanBuilder extends IcecombScanBuilder {

  private final Consumer<DeltaScan> built;

  /**
   * @param built the consumer of the scan
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
