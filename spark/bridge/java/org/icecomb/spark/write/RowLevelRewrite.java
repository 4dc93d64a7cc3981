package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.BeginWrite;
import org.icecomb.spark.planner.Protocol.CommitWrite;
import org.icecomb.spark.planner.Protocol.CommittedWrite;
import org.icecomb.spark.planner.Protocol.Replaced;
import org.icecomb.spark.read.IcecombScanBuilder;
import org.icecomb.spark.read.MetadataColumns;
import org.icecomb.spark.read.RewriteScan;

/**
 * UPDATE, DELETE or MERGE that rewrites files: Spark reads the files with rows to change, writes
 * all their rows, changed or not, to new files, and one commit replaces the files.
 */
public final class RowLevelRewrite extends RowLevelChange {

  private final List<String> metadataColumns;
  private final String refusal;
  private RewriteScan scan;

  /**
   * @param metadataColumns the metadata columns that Spark reads or keeps, besides the rows' file
   * @param refusal the planner's reason for refusing to rewrite files, or null
   */
  public RowLevelRewrite(
      TableHandle table, Command command, List<String> metadataColumns, String refusal) {
    super(table, command);
    this.metadataColumns = metadataColumns;
    this.refusal = refusal;
  }

  @Override
  public NamedReference[] requiredMetadataAttributes() {
    return Stream.concat(Stream.of(MetadataColumns.FILE_ID), metadataColumns.stream())
        .distinct()
        .map(Expressions::column)
        .toArray(NamedReference[]::new);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    if (refusal != null) {
      throw SparkErrors.refused(refusal);
    }
    return new IcecombScanBuilder(table, options) {
      @Override
      public Scan build() {
        return scan = buildRewrite();
      }
    };
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    if (scan == null) {
      throw new IllegalStateException(description() + " writes what it did not read");
    }
    return new Replacement(info, scan);
  }

  /** The builder of a write that replaces the files that were read by the written ones. */
  private final class Replacement extends Builder {

    private final RewriteScan read;

    Replacement(LogicalWriteInfo info, RewriteScan read) {
      super(info);
      this.read = read;
    }

    @Override
    protected BeginWrite begin(Map<String, String> options) {
      return begin("replace_files", statement(), Json.array(), options);
    }

    /** Commits after the read, when the files that were read are known. */
    @Override
    protected CommittedWrite commit(JsonNode write, FinishedFiles finished) {
      Replaced replaced =
          new Replaced(table.reference(), read.fileConditions(), read.replacedFiles());
      return commit(new CommitWrite(write, finished.files(), replaced, null, null, finished.merged()));
    }
  }
}
