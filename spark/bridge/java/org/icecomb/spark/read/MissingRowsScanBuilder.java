package org.icecomb.spark.read;

import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.write.MissingRows;

/** Builds the scan by which a MERGE finds the rows that are missing, and tells its write of it. */
public final class MissingRowsScanBuilder extends IcecombScanBuilder {

  private final MissingRows missing;

  /**
   * @param missing is told what is read
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
