package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.read.MetadataColumns;
import org.icecomb.spark.read.RewriteScan;
import org.icecomb.spark.read.RewriteScanBuilder;

/**
 * UPDATE, DELETE or MERGE: Spark reads the files that hold rows to be changed, writes all their rows
 * anew, changed or not, and one commit replaces the files.
 */
public final class RowLevelRewrite implements RowLevelOperation {

  private final PlannerSession session;
  private final String tableName;
  private final JsonNode reference;
  private final StructType schemaWithIds;
  private final Command command;
  private RewriteScan scan;

  public RowLevelRewrite(
      PlannerSession session,
      String tableName,
      JsonNode reference,
      StructType schemaWithIds,
      Command command) {
    this.session = session;
    this.tableName = tableName;
    this.reference = reference;
    this.schemaWithIds = schemaWithIds;
    this.command = command;
  }

  @Override
  public Command command() {
    return command;
  }

  @Override
  public String description() {
    return "icecomb " + command + " of " + tableName;
  }

  @Override
  public NamedReference[] requiredMetadataAttributes() {
    return new NamedReference[] {Expressions.column(MetadataColumns.FILE)};
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new RewriteScanBuilder(
        session, tableName, reference, schemaWithIds, options, built -> scan = built);
  }

  @Override
  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    if (scan == null) {
      throw new IllegalStateException(description() + " writes what it did not read");
    }
    return new Replacement(info, scan);
  }

  /** Replaces the files that were read by those that are written. */
  private final class Replacement extends IcecombWriteBuilder {

    private final RewriteScan read;

    Replacement(LogicalWriteInfo info, RewriteScan read) {
      super(session, tableName, reference, info);
      this.read = read;
    }

    @Override
    protected void describe(ObjectNode request) {
      request.put("operation", "replace_files");
      request.put("command", command.name().toLowerCase(Locale.ROOT));
    }

    /** Which files were read is known only when they were. */
    @Override
    protected void commit(ObjectNode request, List<String> paths) {
      ObjectNode replaced = request.putObject("replaced");
      replaced.set("reference", reference);
      replaced.set("filters", read.fileConditions());
      ArrayNode files = replaced.putArray("files");
      read.replacedFiles().forEach(files::add);
      super.commit(request, paths);
    }
  }
}
