package org.icecomb.spark;

import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange.TimestampRange;
import org.apache.spark.sql.connector.catalog.ChangelogRange.VersionRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Transforms;
import org.icecomb.spark.planner.Protocol.ChangelogRange;
import org.icecomb.spark.planner.Protocol.LoadChangelog;
import org.icecomb.spark.planner.Protocol.LoadedChangelog;
import org.icecomb.spark.read.IcecombScanBuilder;

/** The rows inserted and deleted by commits, for {@code CHANGES FROM} since Spark 4.2. */
final class PlannedChangelog implements Changelog {

  private static final String VERSION = "_commit_version";

  private final TableHandle table;
  private final LoadedChangelog loaded;

  private PlannedChangelog(TableHandle table, LoadedChangelog loaded) {
    this.table = table;
    this.loaded = loaded;
  }

  static Changelog load(BaseCatalog catalog, Identifier name, ChangelogContext context) {
    try {
      LoadedChangelog found =
          catalog.askTable(
              name,
              handle ->
                  new LoadChangelog(
                      handle,
                      BaseCatalog.name(name),
                      range(context),
                      context.deduplicationMode().value(),
                      context.computeUpdates(),
                      IcebergSettings.audit()),
              LoadedChangelog.class);
      return new PlannedChangelog(
          TableHandle.of(catalog.session(), catalog.shown(name), found.table()), found);
    } catch (UnsupportedOperationException refusal) {
      // Spark takes it for that of a catalog without changes, and does not show its message
      throw SparkErrors.refused(refusal.getMessage());
    }
  }

  private static ChangelogRange range(ChangelogContext context) {
    if (context.range() instanceof VersionRange range) {
      return new ChangelogRange(
          range.startingVersion(),
          range.endingVersion().orElse(null),
          null,
          null,
          range.startingBoundInclusive(),
          range.endingBoundInclusive());
    }
    if (context.range() instanceof TimestampRange range) {
      return new ChangelogRange(
          null,
          null,
          range.startingTimestamp(),
          range.endingTimestamp().orElse(null),
          range.startingBoundInclusive(),
          range.endingBoundInclusive());
    }
    return new ChangelogRange(null, null, null, null, true, true);
  }

  @Override
  public String name() {
    return table.name();
  }

  @Override
  public Column[] columns() {
    return Arrays.stream(Schemas.visible(table.schema()).fields())
        .map(field -> Column.create(field.name(), field.dataType(), field.nullable()))
        .toArray(Column[]::new);
  }

  /** Always false: the planner refuses commits that have such rows if they are to be left out. */
  @Override
  public boolean containsCarryoverRows() {
    return false;
  }

  /** Always false: the planner refuses to leave out undone changes. */
  @Override
  public boolean containsIntermediateChanges() {
    return false;
  }

  @Override
  public boolean representsUpdateAsDeleteAndInsert() {
    return !loaded.identifiers().isEmpty();
  }

  @Override
  public NamedReference[] rowId() {
    return loaded.identifiers().stream().map(Transforms::column).toArray(NamedReference[]::new);
  }

  /** Required by Spark for updates, but used only if there are carry-over rows. */
  @Override
  public NamedReference rowVersion() {
    return Transforms.column(VERSION);
  }

  @Override
  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new IcecombScanBuilder(table, options);
  }

  /** Whether the changelogs have the same rows. */
  @Override
  public boolean equals(Object other) {
    return other instanceof PlannedChangelog log
        && table.session() == log.table.session()
        && table.name().equals(log.table.name())
        && loaded.equals(log.loaded);
  }

  @Override
  public int hashCode() {
    return loaded.hashCode();
  }
}
