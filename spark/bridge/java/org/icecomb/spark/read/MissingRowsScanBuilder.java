package org.icecomb.spark.read;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.write.MissingRows;

/** The builder of a MERGE's scan for missing rows, which it records for the write. */
public final class MissingRowsScanBuilder extends IcecombScanBuilder {

  private final MissingRows missing;

  /**
   * @param missing records the read
   */
  public MissingRowsScanBuilder(
      TableHandle table, CaseInsensitiveStringMap options, MissingRows missing) {
    super(table, options);
    this.missing = missing;
  }

  @Override
  public Scan build() {
    missing.readBy(conditions());
    return super.build();
  }
}
