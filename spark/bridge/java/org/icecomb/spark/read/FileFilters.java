package org.icecomb.spark.read;

import java.lang.reflect.Constructor;
import java.time.ZoneId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.parquet.filter2.predicate.FilterApi;
import org.apache.parquet.filter2.predicate.FilterPredicate;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.catalyst.util.RebaseDateTime.RebaseSpec;
import org.apache.spark.sql.execution.datasources.DataSourceUtils;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFilters;
import org.apache.spark.sql.sources.Filter;
import org.icecomb.spark.convert.Condition;
import scala.Option;

/** The properties of a file that depend on its writer: its calendar, and usable filters. */
final class FileFilters {

  private final ReadSettings settings;
  private final ParquetMetadata footer;
  private final FileSchema schema;
  private final RebaseSpec datetimeRebase;
  private final RebaseSpec int96Rebase;

  FileFilters(ReadSettings settings, ParquetMetadata footer, FileSchema schema) {
    this.settings = settings;
    this.footer = footer;
    this.schema = schema;
    Map<String, String> properties = footer.getFileMetaData().getKeyValueMetaData();
    // Writers of field ids use only the calendar of Iceberg's specification.
    boolean iceberg = FileSchema.hasIds(footer.getFileMetaData().getSchema());
    this.datetimeRebase =
        DataSourceUtils.datetimeRebaseSpec(
            properties::get, iceberg ? "CORRECTED" : settings.datetimeRebase());
    this.int96Rebase =
        DataSourceUtils.int96RebaseSpec(
            properties::get, iceberg ? "CORRECTED" : settings.int96Rebase());
  }

  /** The conditions that can be evaluated on this file, or null if there are none. */
  FilterPredicate predicate(List<Condition> conditions) {
    if (!settings.pushDown() || conditions.isEmpty()) {
      return null;
    }
    List<Filter> filters = new ArrayList<>();
    for (Condition condition : conditions) {
      Filter filter = condition.onFile(schema, true);
      if (filter != null) {
        filters.add(filter);
      }
    }
    if (filters.isEmpty()) {
      return null;
    }
    ParquetFilters converter = converter();
    FilterPredicate all = null;
    for (Filter filter : filters) {
      Option<FilterPredicate> predicate = converter.createFilter(filter);
      if (predicate.isDefined()) {
        all = all == null ? predicate.get() : FilterApi.and(all, predicate.get());
      }
    }
    return all;
  }

  /** Calls the constructor by reflection: it has one more argument since Spark 4.3. */
  private ParquetFilters converter() {
    Constructor<?> constructor = ParquetFilters.class.getConstructors()[0];
    List<Object> arguments =
        new ArrayList<>(
            Arrays.asList(
                footer.getFileMetaData().getSchema(),
                settings.pushDownDate(),
                settings.pushDownTimestamp(),
                settings.pushDownDecimal(),
                settings.pushDownString(),
                settings.inThreshold(),
                true,
                datetimeRebase));
    while (arguments.size() < constructor.getParameterCount()) {
      arguments.add(Option.empty());
    }
    try {
      return (ParquetFilters) constructor.newInstance(arguments.toArray());
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException("This version of Spark makes Parquet filters in another way", e);
    }
  }

  LiveRowsReader newReader(PositionDeletes deletes, boolean filtered, RowNumbers numbers) {
    String writer = footer.getFileMetaData().getCreatedBy();
    boolean foreign = writer == null || !writer.startsWith("parquet-mr");
    ZoneId int96Zone =
        settings.convertInt96() && foreign ? DateTimeUtils.getZoneId(settings.timeZone()) : null;
    return new LiveRowsReader(
        int96Zone,
        datetimeRebase,
        int96Rebase,
        settings.offHeap(),
        settings.batchRows(),
        deletes,
        filtered,
        numbers);
  }
}
