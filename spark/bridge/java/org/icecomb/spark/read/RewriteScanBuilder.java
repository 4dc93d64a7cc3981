package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.function.Consumer;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.PlannerSession;

/** Builds the scan of a statement that writes files anew, and hands it to the statement's write. */
public final class RewriteScanBuilder extends IcecombScanBuilder {

  private final Consumer<RewriteScan> built;

  /**
   * @param built takes the scan
   */
  public RewriteScanBuilder(
      PlannerSession session,
      String tableName,
      JsonNode reference,
      StructType schemaWithIds,
      CaseInsensitiveStringMap options,
      Consumer<RewriteScan> built) {
    super(session, tableName, reference, schemaWithIds, options);
    this.built = built;
  }

  @Override
  public Scan build() {
    RewriteScan scan = buildRewrite();
    built.accept(scan);
    return scan;
  }
}
