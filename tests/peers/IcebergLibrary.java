import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.ContentFile;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.DeleteFiles;
import org.apache.iceberg.ExpireSnapshots;
import org.apache.iceberg.FileContent;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManageSnapshots;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestReader;
import org.apache.iceberg.MetadataColumns;
import org.apache.iceberg.OverwriteFiles;
import org.apache.iceberg.PartitionKey;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.ReplacePartitions;
import org.apache.iceberg.RewriteFiles;
import org.apache.iceberg.RowDelta;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.SingleValueParser;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.SnapshotRef;
import org.apache.iceberg.SnapshotUpdate;
import org.apache.iceberg.StructLike;
import org.apache.iceberg.Table;
import org.apache.iceberg.TableScan;
import org.apache.iceberg.Transaction;
import org.apache.iceberg.UpdatePartitionSpec;
import org.apache.iceberg.UpdateProperties;
import org.apache.iceberg.UpdateSchema;
import org.apache.iceberg.catalog.Catalog;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.BaseDeleteLoader;
import org.apache.iceberg.data.GenericFileWriterFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.deletes.BaseDVFileWriter;
import org.apache.iceberg.deletes.DVFileWriter;
import org.apache.iceberg.deletes.EqualityDeleteWriter;
import org.apache.iceberg.deletes.PositionDelete;
import org.apache.iceberg.deletes.PositionDeleteWriter;
import org.apache.iceberg.encryption.EncryptedOutputFile;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.ExpressionParser;
import org.apache.iceberg.expressions.ExpressionVisitors;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.Literal;
import org.apache.iceberg.expressions.Term;
import org.apache.iceberg.expressions.UnboundPredicate;
import org.apache.iceberg.hadoop.HadoopCatalog;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFileFactory;
import org.apache.iceberg.shaded.com.fasterxml.jackson.core.JsonGenerator;
import org.apache.iceberg.shaded.com.fasterxml.jackson.core.JsonParser;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.JsonNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.iceberg.transforms.Transforms;
import org.apache.iceberg.types.Type;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.variants.PhysicalType;
import org.apache.iceberg.variants.ShreddedObject;
import org.apache.iceberg.variants.ValueArray;
import org.apache.iceberg.variants.Variant;
import org.apache.iceberg.variants.VariantArray;
import org.apache.iceberg.variants.VariantMetadata;
import org.apache.iceberg.variants.VariantObject;
import org.apache.iceberg.variants.VariantValue;
import org.apache.iceberg.variants.Variants;

/**
 * Iceberg's own Java library as a peer, without Spark: one JSON request a line on stdin, one answer
 * a line on stdout.
 *
 * <p>The only argument is JSON: {@code conf} are settings of Hadoop, {@code hive} those of the
 * catalog on the metastore, {@code hadoop} the warehouse of the one on a folder, whose tables are
 * named {@code hadoop:namespace.table}.
 *
 * <p>Values are what JSON has; decimals, dates and times are text, bytes hexadecimal, structs
 * lists, NaN a text. Maps are given as lists of pairs and shown as objects.
 */
public final class IcebergLibrary {
  private static final ObjectMapper JSON =
      new ObjectMapper()
          .enable(JsonParser.Feature.ALLOW_NON_NUMERIC_NUMBERS)
          .disable(JsonGenerator.Feature.QUOTE_NON_NUMERIC_NUMBERS);
  private static final String FOLDER = "hadoop:";

  private final Catalog hive;
  private final Catalog folder;

  private IcebergLibrary(JsonNode settings) {
    Configuration conf = new Configuration();
    texts(settings.get("conf")).forEach(conf::set);
    HiveCatalog catalog = new HiveCatalog();
    catalog.setConf(conf);
    catalog.initialize("ice", texts(settings.get("hive")));
    hive = catalog;
    folder = new HadoopCatalog(conf, settings.get("hadoop").asText());
  }

  public static void main(String[] arguments) throws IOException {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err);
    IcebergLibrary library = new IcebergLibrary(JSON.readTree(arguments[0]));
    answers.println("{\"answer\": null}");
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      Map<String, Object> found = new HashMap<>();
      try {
        found.put("answer", library.answer(JSON.readTree(line)));
      } catch (Exception | StackOverflowError | NoClassDefFoundError error) {
        error.printStackTrace();
        StringBuilder told = new StringBuilder(error.toString());
        for (Throwable cause = error.getCause(); cause != null; cause = cause.getCause()) {
          told.append(": ").append(cause);
        }
        found.put("error", told.toString());
      }
      answers.println(JSON.writeValueAsString(found));
    }
  }

  private Object answer(JsonNode request) throws IOException {
    String name = request.get("table").asText();
    switch (request.get("do").asText()) {
      case "create":
        return create(name, request);
      case "replace":
        return replace(name, request);
      case "drop":
        return catalog(name).dropTable(identifier(name), false);
      default:
        return answer(catalog(name).loadTable(identifier(name)), request);
    }
  }

  private static Object answer(Table table, JsonNode request) throws IOException {
    switch (request.get("do").asText()) {
      case "scan":
        return scan(table, request);
      case "plan":
        return plan(table, request);
      case "files":
        return files(table);
      case "manifests":
        return manifests(table);
      case "metadata":
        return metadata(table);
      case "append":
        return append(table, request);
      case "delta":
        return delta(table, request);
      case "puffin":
        return puffin(table, request);
      case "delete":
        DeleteFiles delete = table.newDelete();
        delete.deleteFromRowFilter(filter(table.schema(), request));
        return committed(table, delete, request);
      case "overwrite":
        OverwriteFiles overwrite = table.newOverwrite();
        overwrite.overwriteByRowFilter(filter(table.schema(), request));
        write(table, request).forEach(overwrite::addFile);
        return committed(table, overwrite, request);
      case "replace_partitions":
        ReplacePartitions partitions = table.newReplacePartitions();
        write(table, request).forEach(partitions::addFile);
        return committed(table, partitions, request);
      case "compact":
        return compact(table, request);
      case "update":
        return update(table, request);
      case "schema":
        return schema(table, request);
      case "spec":
        return spec(table, request);
      case "properties":
        UpdateProperties properties = table.updateProperties();
        texts(request.get("properties")).forEach(properties::set);
        properties.commit();
        return null;
      case "refs":
        return refs(table, request);
      case "expire":
        ExpireSnapshots expire = table.expireSnapshots();
        expire.expireOlderThan(Long.MAX_VALUE).retainLast(request.get("keep").asInt()).commit();
        return null;
      case "statistics":
        return TableStatistics.shown(table);
      case "compute_statistics":
        List<String> columns = new ArrayList<>();
        request.get("columns").forEach(each -> columns.add(each.asText()));
        return TableStatistics.compute(table, columns);
      case "partition_statistics":
        return PartitionCounts.shown(table);
      case "compute_partition_statistics":
        return PartitionCounts.compute(table);
      case "remove_partition_statistics":
        PartitionCounts.remove(table);
        return null;
      case "rewrite_manifests":
        table.rewriteManifests().clusterBy(file -> 1).commit();
        return null;
      default:
        throw new IllegalArgumentException("unknown request " + request);
    }
  }

  // ------------------------------------------------------------------------------------ tables

  private Catalog catalog(String name) {
    return name.startsWith(FOLDER) ? folder : hive;
  }

  private static TableIdentifier identifier(String name) {
    return TableIdentifier.parse(name.startsWith(FOLDER) ? name.substring(FOLDER.length()) : name);
  }

  private Object create(String name, JsonNode request) {
    Schema schema = SchemaParser.fromJson(request.get("schema"));
    PartitionSpec spec = partitions(schema, request);
    Map<String, String> properties = texts(request.get("properties"));
    catalog(name).createTable(identifier(name), schema, spec, properties);
    return null;
  }

  private Object replace(String name, JsonNode request) throws IOException {
    Schema schema = SchemaParser.fromJson(request.get("schema"));
    Transaction transaction =
        catalog(name)
            .buildTable(identifier(name), schema)
            .withPartitionSpec(partitions(schema, request))
            .withProperties(texts(request.get("properties")))
            .replaceTransaction();
    AppendFiles append = transaction.newAppend();
    write(transaction.table(), request).forEach(append::appendFile);
    append.commit();
    transaction.commitTransaction();
    return null;
  }

  private static PartitionSpec partitions(Schema schema, JsonNode request) {
    JsonNode spec = request.get("spec");
    return present(spec)
        ? PartitionSpecParser.fromJson(schema, spec)
        : PartitionSpec.unpartitioned();
  }

  private static Object metadata(Table table) throws IOException {
    List<Object> snapshots = new ArrayList<>();
    for (Snapshot each : table.snapshots()) {
      Map<String, Object> shown = new LinkedHashMap<>();
      shown.put("id", each.snapshotId());
      shown.put("parent", each.parentId());
      shown.put("sequence_number", each.sequenceNumber());
      shown.put("first_row_id", each.firstRowId());
      shown.put("added_rows", each.addedRows());
      shown.put("operation", each.operation());
      shown.put("summary", each.summary());
      snapshots.add(shown);
    }
    Map<String, Object> refs = new TreeMap<>();
    for (Map.Entry<String, SnapshotRef> entry : table.refs().entrySet()) {
      SnapshotRef ref = entry.getValue();
      Map<String, Object> shown = new LinkedHashMap<>();
      shown.put("type", ref.isBranch() ? "branch" : "tag");
      shown.put("snapshot", ref.snapshotId());
      shown.put("max_ref_age_ms", ref.maxRefAgeMs());
      shown.put("max_snapshot_age_ms", ref.maxSnapshotAgeMs());
      shown.put("min_snapshots_to_keep", ref.minSnapshotsToKeep());
      refs.put(entry.getKey(), shown);
    }
    Map<String, Object> found = new LinkedHashMap<>();
    found.put("location", ((BaseTable) table).operations().current().metadataFileLocation());
    found.put("format_version", ((BaseTable) table).operations().current().formatVersion());
    found.put("next_row_id", ((BaseTable) table).operations().current().nextRowId());
    Snapshot current = table.currentSnapshot();
    found.put("current", current == null ? null : current.snapshotId());
    found.put("snapshots", snapshots);
    found.put("refs", refs);
    found.put("schema", JSON.readTree(SchemaParser.toJson(table.schema())));
    found.put("spec", JSON.readTree(PartitionSpecParser.toJson(table.spec())));
    found.put("properties", table.properties());
    return found;
  }

  // ------------------------------------------------------------------------------------- reading

  private static Object scan(Table table, JsonNode request) throws IOException {
    IcebergGenerics.ScanBuilder builder = IcebergGenerics.read(table);
    Schema schema = table.schema();
    if (present(request.get("snapshot"))) {
      long id = request.get("snapshot").asLong();
      builder = builder.useSnapshot(id);
      schema = table.schemas().get(table.snapshot(id).schemaId());
    } else if (present(request.get("ref"))) {
      builder = builder.useSnapshot(table.snapshot(request.get("ref").asText()).snapshotId());
    }
    builder = builder.where(asInSql(filter(schema, request)));
    List<Types.NestedField> columns = schema.columns();
    if (present(request.get("columns"))) {
      List<Types.NestedField> chosen = new ArrayList<>();
      List<String> names = new ArrayList<>();
      boolean reserved = false;
      for (JsonNode each : request.get("columns")) {
        Types.NestedField field = schema.findField(each.asText());
        reserved |= field == null;
        chosen.add(field == null ? MetadataColumns.metadataColumn(table, each.asText()) : field);
        names.add(each.asText());
      }
      columns = chosen;
      // the columns of the filter are read, too
      builder = reserved ? builder.project(new Schema(chosen)) : builder.select(names);
    } else {
      builder = builder.project(schema);
    }
    List<Object> rows = new ArrayList<>();
    try (CloseableIterable<Record> found = builder.build()) {
      for (Record record : found) {
        List<Object> row = new ArrayList<>();
        for (Types.NestedField column : columns) {
          row.add(shown(record.getField(column.name()), column.type()));
        }
        rows.add(row);
      }
    }
    return rows;
  }

  private static TableScan planned(Table table, JsonNode request) {
    TableScan scan = table.newScan().filter(filter(table.schema(), request));
    if (present(request.get("snapshot"))) {
      scan = scan.useSnapshot(request.get("snapshot").asLong());
    }
    return present(request.get("ref")) ? scan.useRef(request.get("ref").asText()) : scan;
  }

  private static Object plan(Table table, JsonNode request) throws IOException {
    Map<String, List<String>> found = new TreeMap<>();
    try (CloseableIterable<FileScanTask> tasks = planned(table, request).planFiles()) {
      for (FileScanTask task : tasks) {
        List<String> deletes = new ArrayList<>();
        task.deletes().forEach(each -> deletes.add(each.location()));
        deletes.sort(null);
        found.put(task.file().location(), deletes);
      }
    }
    return found;
  }

  /** What manifests say of the live data files. */
  /** Each manifest of the current snapshot with its first row id, and those of its entries. */
  private static Object manifests(Table table) throws IOException {
    List<Object> found = new ArrayList<>();
    for (ManifestFile manifest : table.currentSnapshot().dataManifests(table.io())) {
      Map<String, Object> files = new TreeMap<>();
      try (ManifestReader<DataFile> reader =
          ManifestFiles.read(manifest, table.io(), table.specs())) {
        for (DataFile file : reader) {
          files.put(file.location(), file.firstRowId());
        }
      }
      Map<String, Object> shown = new LinkedHashMap<>();
      shown.put("path", manifest.path());
      shown.put("first_row_id", manifest.firstRowId());
      shown.put("files", files);
      found.add(shown);
    }
    return found;
  }

  private static Object files(Table table) throws IOException {
    List<Object> found = new ArrayList<>();
    try (CloseableIterable<FileScanTask> tasks =
        table.newScan().includeColumnStats().planFiles()) {
      for (FileScanTask task : tasks) {
        Map<String, Object> shown = described(table, task.file());
        List<Object> deletes = new ArrayList<>();
        task.deletes().forEach(each -> deletes.add(each.location()));
        shown.put("deletes", deletes);
        found.add(shown);
      }
    }
    return found;
  }

  private static Map<String, Object> described(Table table, ContentFile<?> file) {
    Map<String, Object> shown = new LinkedHashMap<>();
    shown.put("path", file.location());
    shown.put("format", file.format().name());
    shown.put("spec", file.specId());
    Types.StructType type = table.specs().get(file.specId()).partitionType();
    List<Object> partition = new ArrayList<>();
    for (int at = 0; at < type.fields().size(); at++) {
      partition.add(internal(file.partition().get(at, Object.class)));
    }
    shown.put("partition", partition);
    shown.put("rows", file.recordCount());
    shown.put("first_row_id", file.firstRowId());
    shown.put("bytes", file.fileSizeInBytes());
    shown.put("value_counts", file.valueCounts());
    shown.put("null_value_counts", file.nullValueCounts());
    shown.put("nan_value_counts", file.nanValueCounts());
    shown.put("lower_bounds", hexadecimal(file.lowerBounds()));
    shown.put("upper_bounds", hexadecimal(file.upperBounds()));
    return shown;
  }

  /** A value of a partition as manifests have it: times are numbers. */
  static Object internal(Object value) {
    if (value instanceof ByteBuffer || value instanceof byte[]) {
      return hexadecimal(value);
    }
    if (value instanceof BigDecimal) {
      return shown((BigDecimal) value);
    }
    return value instanceof CharSequence || value instanceof UUID ? value.toString() : value;
  }

  private static Map<Integer, String> hexadecimal(Map<Integer, ByteBuffer> bounds) {
    Map<Integer, String> found = new TreeMap<>();
    if (bounds != null) {
      bounds.forEach((id, value) -> found.put(id, hexadecimal(value)));
    }
    return found;
  }

  // ------------------------------------------------------------------------------------- writing

  private static Object append(Table table, JsonNode request) throws IOException {
    boolean fast = request.path("fast").asBoolean();
    AppendFiles append = fast ? table.newFastAppend() : table.newAppend();
    write(table, request).forEach(append::appendFile);
    return committed(table, append, request);
  }

  /** Rows that are added, rows deleted by position, and values whose rows are deleted, at once. */
  private static Object delta(Table table, JsonNode request) throws IOException {
    RowDelta delta = table.newRowDelta();
    if (present(request.get("rows"))) {
      write(table, request).forEach(delta::addRows);
    }
    if (present(request.get("filter"))) {
      positions(table, request, delta);
    }
    if (present(request.get("keys"))) {
      delta.addDeletes(values(table, request));
    }
    return committed(table, delta, request);
  }

  private static Object compact(Table table, JsonNode request) throws IOException {
    long start = table.currentSnapshot().snapshotId();
    RewriteFiles rewrite = table.newRewrite().validateFromSnapshot(start);
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      Set<String> seen = new LinkedHashSet<>();
      for (FileScanTask task : tasks) {
        rewrite.deleteFile(task.file());
        for (DeleteFile each : task.deletes()) {
          if (seen.add(each.location())) {
            rewrite.deleteFile(each);
          }
        }
      }
    }
    Schema schema = moved(table);
    List<Record> rows = new ArrayList<>();
    try (CloseableIterable<Record> found = IcebergGenerics.read(table).project(schema).build()) {
      found.forEach(each -> rows.add(each.copy()));
    }
    writeRecords(table, request, rows, schema).forEach(rewrite::addFile);
    return committed(table, rewrite, request);
  }

  /** All files are replaced; of the rows that match, some columns get other values. */
  private static Object update(Table table, JsonNode request) throws IOException {
    long start = table.currentSnapshot().snapshotId();
    OverwriteFiles overwrite = table.newOverwrite().validateFromSnapshot(start);
    try (CloseableIterable<FileScanTask> tasks = table.newScan().planFiles()) {
      tasks.forEach(task -> overwrite.deleteFile(task.file()));
    }
    Schema schema = moved(table);
    String id = MetadataColumns.ROW_ID.name();
    Set<Object> changed = new LinkedHashSet<>();
    Expression filter = asInSql(filter(table.schema(), request));
    try (CloseableIterable<Record> found =
        IcebergGenerics.read(table).where(filter).project(schema).build()) {
      found.forEach(each -> changed.add(each.getField(id)));
    }
    List<Record> rows = new ArrayList<>();
    try (CloseableIterable<Record> found = IcebergGenerics.read(table).project(schema).build()) {
      for (Record each : found) {
        Record row = each.copy();
        if (changed.contains(row.getField(id))) {
          for (Map.Entry<String, JsonNode> entry : request.get("set").properties()) {
            Type type = schema.findType(entry.getKey());
            row.setField(entry.getKey(), value(entry.getValue(), type));
          }
          row.setField(MetadataColumns.LAST_UPDATED_SEQUENCE_NUMBER.name(), null);
        }
        rows.add(row);
      }
    }
    writeRecords(table, request, rows, schema).forEach(overwrite::addFile);
    return committed(table, overwrite, request);
  }

  /** The columns of rows that move to other files, which keep their ids. */
  private static Schema moved(Table table) {
    return version(table) < 3
        ? table.schema()
        : MetadataColumns.schemaWithRowLineage(table.schema());
  }

  private static int version(Table table) {
    return ((BaseTable) table).operations().current().formatVersion();
  }

  private static Object committed(Table table, SnapshotUpdate<?> update, JsonNode request) {
    if (present(request.get("branch"))) {
      update.toBranch(request.get("branch").asText());
    }
    update.commit();
    Snapshot current = table.currentSnapshot();
    return current == null ? null : current.snapshotId();
  }

  private static List<DataFile> write(Table table, JsonNode request) throws IOException {
    List<Record> rows = new ArrayList<>();
    for (JsonNode each : request.get("rows")) {
      rows.add(record(each, table.schema().asStruct()));
    }
    return writeRecords(table, request, rows, table.schema());
  }

  private static List<DataFile> writeRecords(
      Table table, JsonNode request, List<Record> rows, Schema written) throws IOException {
    Schema schema = table.schema();
    PartitionSpec spec = table.spec();
    InternalRecordWrapper wrapper = new InternalRecordWrapper(schema.asStruct());
    PartitionKey key = new PartitionKey(spec, schema);
    Map<StructLike, List<Record>> groups = new LinkedHashMap<>();
    for (Record row : rows) {
      key.partition(wrapper.wrap(row));
      if (!groups.containsKey(key)) {
        groups.put(key.copy(), new ArrayList<>());
      }
      groups.get(key).add(row);
    }
    FileFormat format = format(table, request, "format");
    GenericFileWriterFactory factory =
        new GenericFileWriterFactory.Builder(table)
            .dataFileFormat(format)
            .dataSchema(written)
            .build();
    OutputFileFactory outputs = outputs(table, format);
    List<DataFile> files = new ArrayList<>();
    for (Map.Entry<StructLike, List<Record>> group : groups.entrySet()) {
      StructLike partition = spec.isPartitioned() ? group.getKey() : null;
      DataWriter<Record> writer =
          factory.newDataWriter(output(outputs, spec, partition), spec, partition);
      try (writer) {
        group.getValue().forEach(writer::write);
      }
      files.add(writer.toDataFile());
    }
    return files;
  }

  /** Position delete files for the rows that match a filter now, a file or a partition each. */
  private static void positions(Table table, JsonNode request, RowDelta delta) throws IOException {
    Map<String, DataFile> files = new HashMap<>();
    Map<String, List<DeleteFile>> before = new HashMap<>();
    try (CloseableIterable<FileScanTask> tasks = planned(table, request).planFiles()) {
      for (FileScanTask task : tasks) {
        files.put(task.file().location(), task.file());
        before.put(task.file().location(), positional(task));
      }
    }
    List<Types.NestedField> columns = new ArrayList<>(table.schema().columns());
    columns.add(MetadataColumns.FILE_PATH);
    columns.add(MetadataColumns.ROW_POSITION);
    boolean vectors = version(table) > 2;
    boolean whole =
        !vectors && request.path("granularity").asText("file").equals("partition");
    Map<Object, TreeMap<String, List<Long>>> groups = new LinkedHashMap<>();
    IcebergGenerics.ScanBuilder builder = IcebergGenerics.read(table);
    builder = builder.where(asInSql(filter(table.schema(), request)));
    builder = builder.project(new Schema(columns));
    try (CloseableIterable<Record> found = builder.build()) {
      for (Record row : found) {
        String path = row.getField(MetadataColumns.FILE_PATH.name()).toString();
        DataFile file = files.get(path);
        Object group = whole ? List.of(file.specId(), file.partition().toString()) : path;
        groups
            .computeIfAbsent(group, each -> new TreeMap<>())
            .computeIfAbsent(path, each -> new ArrayList<>())
            .add((Long) row.getField(MetadataColumns.ROW_POSITION.name()));
      }
    }
    if (vectors) {
      vectors(table, groups.values(), files, before, delta);
      return;
    }
    FileFormat format = format(table, request, "delete_format");
    GenericFileWriterFactory factory =
        new GenericFileWriterFactory.Builder(table).deleteFileFormat(format).build();
    OutputFileFactory outputs = outputs(table, format);
    for (TreeMap<String, List<Long>> group : groups.values()) {
      DataFile file = files.get(group.firstKey());
      PartitionSpec spec = table.specs().get(file.specId());
      StructLike partition = spec.isPartitioned() ? file.partition() : null;
      PositionDeleteWriter<Record> writer =
          factory.newPositionDeleteWriter(output(outputs, spec, partition), spec, partition);
      PositionDelete<Record> position = PositionDelete.create();
      try (writer) {
        for (Map.Entry<String, List<Long>> entry : group.entrySet()) {
          entry.getValue().sort(null);
          for (long each : entry.getValue()) {
            writer.write(position.set(entry.getKey(), each));
          }
        }
      }
      delta.addDeletes(writer.toDeleteFile());
    }
  }

  private static List<DeleteFile> positional(FileScanTask task) {
    List<DeleteFile> found = new ArrayList<>(task.deletes());
    found.removeIf(each -> each.content() != FileContent.POSITION_DELETES);
    return found;
  }

  /** One Puffin file, with what was deleted of its data files before. */
  private static void vectors(
      Table table,
      Collection<TreeMap<String, List<Long>>> groups,
      Map<String, DataFile> files,
      Map<String, List<DeleteFile>> before,
      RowDelta delta)
      throws IOException {
    delta.validateFromSnapshot(table.currentSnapshot().snapshotId());
    BaseDeleteLoader loader = new BaseDeleteLoader(each -> table.io().newInputFile(each));
    DVFileWriter writer =
        new BaseDVFileWriter(
            outputs(table, FileFormat.PUFFIN),
            path -> loader.loadPositionDeletes(before.get(path), path));
    try (writer) {
      for (TreeMap<String, List<Long>> group : groups) {
        for (Map.Entry<String, List<Long>> entry : group.entrySet()) {
          DataFile file = files.get(entry.getKey());
          PartitionSpec spec = table.specs().get(file.specId());
          for (long each : entry.getValue()) {
            writer.delete(entry.getKey(), each, spec, file.partition());
          }
        }
      }
    }
    writer.result().deleteFiles().forEach(delta::addDeletes);
    writer.result().rewrittenDeleteFiles().forEach(delta::removeDeletes);
  }

  /** A Puffin file of vectors that no snapshot has: ranges of positions by data file. */
  private static Object puffin(Table table, JsonNode request) throws IOException {
    DVFileWriter writer =
        new BaseDVFileWriter(outputs(table, FileFormat.PUFFIN), path -> null);
    try (writer) {
      for (Map.Entry<String, JsonNode> entry : request.get("vectors").properties()) {
        for (JsonNode range : entry.getValue()) {
          long end = range.get(1).asLong();
          for (long each = range.get(0).asLong(); each < end; each += range.get(2).asLong()) {
            writer.delete(entry.getKey(), each, table.spec(), null);
          }
        }
      }
    }
    List<Object> found = new ArrayList<>();
    for (DeleteFile each : writer.result().deleteFiles()) {
      Map<String, Object> shown = new TreeMap<>();
      shown.put("file_path", each.location());
      shown.put("referenced_data_file", each.referencedDataFile());
      shown.put("content_offset", each.contentOffset());
      shown.put("content_size_in_bytes", each.contentSizeInBytes());
      shown.put("file_size_in_bytes", each.fileSizeInBytes());
      shown.put("record_count", each.recordCount());
      found.add(shown);
    }
    return found;
  }

  /** An equality delete file; it is one partition's where a row of that partition is given. */
  private static DeleteFile values(Table table, JsonNode request) throws IOException {
    List<Types.NestedField> columns = new ArrayList<>();
    for (JsonNode each : request.get("keys")) {
      columns.add(table.schema().findField(each.asText()));
    }
    Schema keys = new Schema(columns);
    FileFormat format = format(table, request, "delete_format");
    GenericFileWriterFactory factory =
        new GenericFileWriterFactory.Builder(table)
            .deleteFileFormat(format)
            .equalityFieldIds(columns.stream().mapToInt(Types.NestedField::fieldId).toArray())
            .equalityDeleteRowSchema(keys)
            .build();
    PartitionSpec spec = table.spec();
    PartitionKey partition = null;
    if (present(request.get("beside"))) {
      partition = new PartitionKey(spec, table.schema());
      Record row = record(request.get("beside"), table.schema().asStruct());
      partition.partition(new InternalRecordWrapper(table.schema().asStruct()).wrap(row));
    } else {
      spec =
          table.specs().values().stream()
              .filter(PartitionSpec::isUnpartitioned)
              .findFirst()
              .orElseThrow();
    }
    EncryptedOutputFile output = output(outputs(table, format), spec, partition);
    EqualityDeleteWriter<Record> writer = factory.newEqualityDeleteWriter(output, spec, partition);
    try (writer) {
      for (JsonNode each : request.get("values")) {
        writer.write(record(each, keys.asStruct()));
      }
    }
    return writer.toDeleteFile();
  }

  private static FileFormat format(Table table, JsonNode request, String key) {
    String usual = table.properties().getOrDefault("write.format.default", "parquet");
    return FileFormat.fromString(request.path(key).asText(request.path("format").asText(usual)));
  }

  private static OutputFileFactory outputs(Table table, FileFormat format) {
    return OutputFileFactory.builderFor(table, 1, 1L).format(format).build();
  }

  private static EncryptedOutputFile output(
      OutputFileFactory outputs, PartitionSpec spec, StructLike partition) {
    return partition == null ? outputs.newOutputFile() : outputs.newOutputFile(spec, partition);
  }

  // ----------------------------------------------------------------------------------- evolution

  private static Object schema(Table table, JsonNode request) {
    UpdateSchema update = table.updateSchema();
    for (JsonNode each : request.get("changes")) {
      String column = each.get(1).asText();
      switch (each.get(0).asText()) {
        case "add":
          int dot = column.lastIndexOf('.');
          String parent = dot < 0 ? null : column.substring(0, dot);
          String added = column.substring(dot + 1);
          Type kind = type(each.get(2));
          if (each.path(4).asBoolean()) {
            update.addRequiredColumn(parent, added, kind, null, byDefault(kind, each.get(3)));
          } else {
            update.addColumn(parent, added, kind, null, byDefault(kind, each.get(3)));
          }
          break;
        case "default":
          Type known = table.schema().findType(column);
          update.updateColumnDefault(column, byDefault(known, each.get(2)));
          break;
        case "drop":
          update.deleteColumn(column);
          break;
        case "rename":
          update.renameColumn(column, each.get(2).asText());
          break;
        case "type":
          update.updateColumn(column, type(each.get(2)).asPrimitiveType());
          break;
        case "first":
          update.moveFirst(column);
          break;
        case "after":
          update.moveAfter(column, each.get(2).asText());
          break;
        default:
          throw new IllegalArgumentException("unknown change " + each);
      }
    }
    update.commit();
    return null;
  }

  /** A default value, which is written as in metadata. */
  private static Literal<?> byDefault(Type type, JsonNode written) {
    Object value = SingleValueParser.fromJson(type, written);
    if (type.typeId() == Type.TypeID.TIMESTAMP_NANO && value != null) {
      // it takes numbers for microseconds
      return Expressions.lit(written.asText()).to(type);
    }
    return value == null ? null : Expressions.lit(value).to(type);
  }

  private static Type type(JsonNode written) {
    String schema =
        String.format(
            "{\"type\": \"struct\", \"schema-id\": 0, \"fields\": "
                + "[{\"id\": 1000, \"name\": \"c\", \"required\": false, \"type\": %s}]}",
            written);
    return SchemaParser.fromJson(schema).findField(1000).type();
  }

  private static Object spec(Table table, JsonNode request) {
    UpdatePartitionSpec update = table.updateSpec();
    for (JsonNode each : request.get("changes")) {
      if (each.get(0).asText().equals("remove")) {
        update.removeField(each.get(1).asText());
      } else {
        Term term = Expressions.ref(each.get(2).asText());
        if (!each.get(1).asText().equals("identity")) {
          term =
              Expressions.transform(
                  each.get(2).asText(), Transforms.fromString(each.get(1).asText()));
        }
        update.addField(each.get(3).asText(), term);
      }
    }
    update.commit();
    return null;
  }

  private static Object refs(Table table, JsonNode request) {
    ManageSnapshots manage = table.manageSnapshots();
    for (JsonNode each : request.get("changes")) {
      String ref = each.get(1).asText();
      long id = each.has(2) ? each.get(2).asLong() : table.currentSnapshot().snapshotId();
      switch (each.get(0).asText()) {
        case "branch":
          manage.createBranch(ref, id);
          break;
        case "tag":
          manage.createTag(ref, id);
          break;
        case "remove":
          manage.removeTag(ref);
          break;
        case "fast_forward":
          manage.fastForwardBranch("main", ref);
          break;
        case "rollback":
          manage.rollbackTo(Long.parseLong(ref));
          break;
        default:
          throw new IllegalArgumentException("unknown change " + each);
      }
    }
    manage.commit();
    return null;
  }

  // -------------------------------------------------------------------------------------- values

  private static boolean present(JsonNode node) {
    return node != null && !node.isNull();
  }

  private static Map<String, String> texts(JsonNode node) {
    Map<String, String> found = new LinkedHashMap<>();
    if (present(node)) {
      node.properties().forEach(each -> found.put(each.getKey(), each.getValue().asText()));
    }
    return found;
  }

  private static Expression filter(Schema schema, JsonNode request) {
    JsonNode filter = request.get("filter");
    if (!present(filter)) {
      return Expressions.alwaysTrue();
    }
    return typed(filter, schema)
        ? ExpressionParser.fromJson(filter.toString(), schema)
        : ExpressionParser.fromJson(filter);
  }

  /** For this library null is less than any value, and unequal to it; in SQL it is neither. */
  private static Expression asInSql(Expression filter) {
    return ExpressionVisitors.visit(
        Expressions.rewriteNot(filter),
        new ExpressionVisitors.ExpressionVisitor<Expression>() {
          @Override
          public Expression alwaysTrue() {
            return Expressions.alwaysTrue();
          }

          @Override
          public Expression alwaysFalse() {
            return Expressions.alwaysFalse();
          }

          @Override
          public Expression and(Expression left, Expression right) {
            return Expressions.and(left, right);
          }

          @Override
          public Expression or(Expression left, Expression right) {
            return Expressions.or(left, right);
          }

          @Override
          public <T> Expression predicate(UnboundPredicate<T> predicate) {
            switch (predicate.op()) {
              case LT:
              case LT_EQ:
              case NOT_EQ:
              case NOT_IN:
              case NOT_STARTS_WITH:
                return Expressions.and(Expressions.notNull(predicate.ref().name()), predicate);
              default:
                return predicate;
            }
          }
        });
  }

  /** Gives literals the form that their columns need; whether one is compared with bytes. */
  private static boolean typed(JsonNode node, Schema schema) {
    boolean bytes = false;
    for (JsonNode each : node) {
      if (each.isObject()) {
        bytes |= typed(each, schema);
      }
    }
    String column = node.path("term").asText();
    Types.NestedField field = column.isEmpty() ? null : schema.findField(column);
    if (field == null) {
      return bytes;
    }
    Type type = field.type();
    if (node.has("value")) {
      ((ObjectNode) node).set("value", literal(node.get("value"), type));
    }
    if (node.has("values")) {
      ArrayNode values = JSON.createArrayNode();
      node.get("values").forEach(each -> values.add(literal(each, type)));
      ((ObjectNode) node).set("values", values);
    }
    return bytes || type.typeId() == Type.TypeID.BINARY || type.typeId() == Type.TypeID.FIXED;
  }

  private static JsonNode literal(JsonNode value, Type type) {
    switch (type.typeId()) {
      case FLOAT:
      case DOUBLE:
        return JSON.getNodeFactory().numberNode(number(value));
      case DECIMAL:
        int scale = ((Types.DecimalType) type).scale();
        BigDecimal exact = new BigDecimal(value.asText()).setScale(scale);
        return JSON.getNodeFactory().textNode(exact.toPlainString());
      default:
        return value;
    }
  }

  private static Record record(JsonNode values, Types.StructType type) {
    Record record = GenericRecord.create(type);
    for (int at = 0; at < type.fields().size(); at++) {
      record.set(at, value(values.get(at), type.fields().get(at).type()));
    }
    return record;
  }

  private static Object value(JsonNode node, Type type) {
    if (!present(node)) {
      return null;
    }
    switch (type.typeId()) {
      case BOOLEAN:
        return node.booleanValue();
      case INTEGER:
        return node.intValue();
      case LONG:
        return node.longValue();
      case FLOAT:
        return (float) number(node);
      case DOUBLE:
        return number(node);
      case DECIMAL:
        return new BigDecimal(node.asText()).setScale(((Types.DecimalType) type).scale());
      case DATE:
        return LocalDate.parse(node.asText());
      case TIME:
        return LocalTime.parse(node.asText());
      case TIMESTAMP:
        LocalDateTime moment = LocalDateTime.parse(node.asText().replace(' ', 'T'));
        boolean zoned = ((Types.TimestampType) type).shouldAdjustToUTC();
        return zoned ? moment.atOffset(ZoneOffset.UTC) : moment;
      case TIMESTAMP_NANO:
        LocalDateTime fine = LocalDateTime.parse(node.asText().replace(' ', 'T'));
        boolean instant = ((Types.TimestampNanoType) type).shouldAdjustToUTC();
        return instant ? fine.atOffset(ZoneOffset.UTC) : fine;
      case VARIANT:
        if (node.isTextual()) {
          return Variant.of(Variants.emptyMetadata(), Variants.of(node.asText()));
        }
        TreeSet<String> names = new TreeSet<>();
        collect(node, names);
        VariantMetadata metadata = Variants.metadata(names);
        return Variant.of(metadata, variant(node, metadata));
      case GEOMETRY:
      case GEOGRAPHY:
        return ByteBuffer.wrap(HexFormat.of().parseHex(node.asText()));
      case STRING:
        return node.asText();
      case UUID:
        return UUID.fromString(node.asText());
      case FIXED:
        return HexFormat.of().parseHex(node.asText());
      case BINARY:
        return ByteBuffer.wrap(HexFormat.of().parseHex(node.asText()));
      case STRUCT:
        return record(node, type.asStructType());
      case LIST:
        List<Object> list = new ArrayList<>();
        node.forEach(each -> list.add(value(each, type.asListType().elementType())));
        return list;
      case MAP:
        Types.MapType map = type.asMapType();
        Map<Object, Object> found = new LinkedHashMap<>();
        for (JsonNode each : node) {
          found.put(value(each.get(0), map.keyType()), value(each.get(1), map.valueType()));
        }
        return found;
      default:
        throw new IllegalArgumentException("no values of " + type);
    }
  }

  private static void collect(JsonNode tree, Collection<String> names) {
    tree.fieldNames().forEachRemaining(names::add);
    tree.forEach(each -> collect(each, names));
  }

  /** A variant value of a tree: an object, or its type and what it is of that type. */
  private static VariantValue variant(JsonNode tree, VariantMetadata metadata) {
    if (tree.isObject()) {
      ShreddedObject object = Variants.object(metadata);
      tree.properties()
          .forEach(each -> object.put(each.getKey(), variant(each.getValue(), metadata)));
      return object;
    }
    JsonNode value = tree.get(1);
    switch (PhysicalType.valueOf(tree.get(0).asText())) {
      case ARRAY:
        ValueArray array = Variants.array();
        value.forEach(each -> array.add(variant(each, metadata)));
        return array;
      case NULL:
        return Variants.ofNull();
      case BOOLEAN_TRUE:
        return Variants.of(true);
      case BOOLEAN_FALSE:
        return Variants.of(false);
      case INT8:
        return Variants.of((byte) value.intValue());
      case INT16:
        return Variants.of((short) value.intValue());
      case INT32:
        return Variants.of(value.intValue());
      case INT64:
        return Variants.of(value.longValue());
      case FLOAT:
        return Variants.of((float) value.doubleValue());
      case DOUBLE:
        return Variants.of(value.doubleValue());
      case DECIMAL4:
      case DECIMAL8:
      case DECIMAL16:
        return Variants.of(new BigDecimal(value.asText()));
      case DATE:
        return Variants.ofDate(value.intValue());
      case TIME:
        return Variants.ofTime(value.longValue());
      case TIMESTAMPTZ:
        return Variants.ofTimestamptz(value.longValue());
      case TIMESTAMPNTZ:
        return Variants.ofTimestampntz(value.longValue());
      case TIMESTAMPTZ_NANOS:
        return Variants.ofTimestamptzNanos(value.longValue());
      case TIMESTAMPNTZ_NANOS:
        return Variants.ofTimestampntzNanos(value.longValue());
      case BINARY:
        return Variants.of(ByteBuffer.wrap(HexFormat.of().parseHex(value.asText())));
      case UUID:
        return Variants.ofUUID(value.asText());
      default:
        return Variants.of(value.asText());
    }
  }

  private static Object tree(VariantValue value) {
    PhysicalType type = value.type();
    if (type == PhysicalType.OBJECT) {
      VariantObject object = value.asObject();
      Map<String, Object> fields = new TreeMap<>();
      object.fieldNames().forEach(name -> fields.put(name, tree(object.get(name))));
      return fields;
    }
    if (type == PhysicalType.ARRAY) {
      VariantArray array = value.asArray();
      List<Object> elements = new ArrayList<>();
      for (int at = 0; at < array.numElements(); at++) {
        elements.add(tree(array.get(at)));
      }
      return List.of(type.name(), elements);
    }
    if (type == PhysicalType.NULL) {
      return List.of(type.name());
    }
    Object found = value.asPrimitive().get();
    if (found instanceof BigDecimal) {
      found = ((BigDecimal) found).toPlainString();
    } else if (found instanceof ByteBuffer) {
      found = hexadecimal(found);
    } else if (found instanceof UUID) {
      found = found.toString();
    }
    return List.of(type.name(), found);
  }

  private static double number(JsonNode node) {
    return node.isTextual() ? Double.parseDouble(node.asText()) : node.doubleValue();
  }

  private static Object shown(Object value, Type type) {
    if (value == null) {
      return null;
    }
    switch (type.typeId()) {
      case FLOAT:
        return shown(((Float) value).doubleValue());
      case DOUBLE:
        return shown((double) (Double) value);
      case DECIMAL:
        return shown((BigDecimal) value);
      case TIME:
        return shown((LocalTime) value);
      case TIMESTAMP:
        LocalDateTime moment =
            value instanceof OffsetDateTime
                ? ((OffsetDateTime) value).withOffsetSameInstant(ZoneOffset.UTC).toLocalDateTime()
                : (LocalDateTime) value;
        return moment.toLocalDate() + " " + shown(moment.toLocalTime());
      case TIMESTAMP_NANO:
        LocalDateTime fine =
            value instanceof OffsetDateTime
                ? ((OffsetDateTime) value).withOffsetSameInstant(ZoneOffset.UTC).toLocalDateTime()
                : (LocalDateTime) value;
        return fine.format(DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSSSSS"));
      case VARIANT:
        return tree(((Variant) value).value());
      case DATE:
      case STRING:
      case UUID:
        return value.toString();
      case FIXED:
      case BINARY:
        return hexadecimal(value);
      case STRUCT:
        List<Object> struct = new ArrayList<>();
        List<Types.NestedField> fields = type.asStructType().fields();
        for (int at = 0; at < fields.size(); at++) {
          struct.add(shown(((StructLike) value).get(at, Object.class), fields.get(at).type()));
        }
        return struct;
      case LIST:
        List<Object> list = new ArrayList<>();
        for (Object each : (Collection<?>) value) {
          list.add(shown(each, type.asListType().elementType()));
        }
        return list;
      case MAP:
        Types.MapType map = type.asMapType();
        Map<String, Object> found = new LinkedHashMap<>();
        for (Map.Entry<?, ?> each : ((Map<?, ?>) value).entrySet()) {
          Object key = shown(each.getKey(), map.keyType());
          found.put(Objects.toString(key), shown(each.getValue(), map.valueType()));
        }
        return found;
      default:
        return value;
    }
  }

  private static Object shown(double value) {
    return Double.isNaN(value) ? (Object) "NaN" : (Object) value;
  }

  /** As Python shows decimals: plainly, and without zeros at the end where it would not. */
  private static String shown(BigDecimal value) {
    String text = value.toString();
    return text.contains("E") ? value.stripTrailingZeros().toPlainString() : text;
  }

  private static String shown(LocalTime time) {
    String text =
        String.format("%02d:%02d:%02d", time.getHour(), time.getMinute(), time.getSecond());
    return time.getNano() == 0 ? text : text + String.format(".%06d", time.getNano() / 1000);
  }

  private static String hexadecimal(Object value) {
    if (value instanceof byte[]) {
      return HexFormat.of().formatHex((byte[]) value);
    }
    ByteBuffer buffer = ((ByteBuffer) value).duplicate();
    byte[] bytes = new byte[buffer.remaining()];
    buffer.get(bytes);
    return HexFormat.of().formatHex(bytes);
  }
}
