import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.paimon.CoreOptions;
import org.apache.paimon.Snapshot;
import org.apache.paimon.casting.CastExecutors;
import org.apache.paimon.catalog.Catalog;
import org.apache.paimon.catalog.CatalogContext;
import org.apache.paimon.catalog.CatalogFactory;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.Decimal;
import org.apache.paimon.data.GenericArray;
import org.apache.paimon.data.GenericMap;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.InternalArray;
import org.apache.paimon.data.InternalMap;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.deletionvectors.BitmapDeletionVector;
import org.apache.paimon.deletionvectors.append.AppendDeleteFileMaintainer;
import org.apache.paimon.deletionvectors.append.BaseAppendDeleteFileMaintainer;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.manifest.IndexManifestEntry;
import org.apache.paimon.options.ExpireConfig;
import org.apache.paimon.options.Options;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.SchemaChange;
import org.apache.paimon.schema.TableSchema;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.paimon.table.FileStoreTable;
import org.apache.paimon.table.sink.BatchTableCommit;
import org.apache.paimon.table.sink.BatchTableWrite;
import org.apache.paimon.table.sink.BatchWriteBuilder;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.table.source.ReadBuilder;
import org.apache.paimon.table.source.Split;
import org.apache.paimon.types.ArrayType;
import org.apache.paimon.types.DataField;
import org.apache.paimon.types.DataType;
import org.apache.paimon.types.DataTypeCasts;
import org.apache.paimon.types.DataTypeJsonParser;
import org.apache.paimon.types.DataTypes;
import org.apache.paimon.types.DecimalType;
import org.apache.paimon.types.MapType;
import org.apache.paimon.types.MultisetType;
import org.apache.paimon.types.RowType;
import org.apache.paimon.utils.DefaultValueUtils;

/**
 * Paimon's own Java library as a peer: one JSON request a line on stdin, one answer a line on
 * stdout. The only argument is the warehouse's folder.
 *
 * <p>Values are what JSON has; decimals, dates and times are text, bytes hexadecimal, structs lists,
 * maps lists of pairs, NaN a text.
 */
public final class PaimonJava {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final DateTimeFormatter MICROSECONDS =
      DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSSSSS");
  private final Catalog catalog;

  private PaimonJava(String warehouse) throws Exception {
    Options options = new Options();
    options.set("warehouse", warehouse);
    options.set("cache-enabled", "false");
    catalog = CatalogFactory.createCatalog(CatalogContext.create(options));
    catalog.createDatabase("db", true);
  }

  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    PaimonJava peer = new PaimonJava(arguments[0]);
    BufferedReader requests =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = requests.readLine(); line != null; line = requests.readLine()) {
      Map<String, Object> answer = new LinkedHashMap<>();
      try {
        answer.put("ok", peer.answer(JSON.readTree(line)));
      } catch (Throwable error) {
        error.printStackTrace();
        answer.put("error", String.valueOf(error.getMessage()));
      }
      answers.write((JSON.writeValueAsString(answer) + "\n").getBytes(StandardCharsets.UTF_8));
      answers.flush();
    }
    System.exit(0);
  }

  private Object answer(JsonNode request) throws Exception {
    switch (request.get("do").asText()) {
      case "create":
        catalog.createTable(
            identifier(request),
            TableSchema.fromJson(request.get("schema").asText()).toSchema(),
            false);
        return table(request).location().toString();
      case "write":
        return write(table(request), request);
      case "read":
        return read(table(request));
      case "schema":
        return table(request).schema().toString();
      case "compact":
        return compact(table(request));
      case "delete":
        return delete(table(request), request.get("position").asLong());
      case "expire":
        return table(request)
            .newExpireSnapshots()
            .config(
                ExpireConfig.builder()
                    .snapshotRetainMin(1)
                    .snapshotRetainMax(1)
                    .snapshotTimeRetain(Duration.ZERO)
                    .build())
            .expire();
      case "tag":
        table(request).createTag(request.get("name").asText());
        return null;
      case "branch":
        table(request).createBranch(request.get("name").asText());
        return null;
      case "rollback":
        table(request).rollbackTo(request.get("snapshot").asLong());
        return null;
      case "change":
        return change(request);
      case "casts":
        return casts(request.get("types"));
      case "default":
        DefaultValueUtils.validateDefaultValue(
            type(request.get("type")), request.get("value").asText());
        return null;
      case "immutable":
        return new ArrayList<>(CoreOptions.IMMUTABLE_OPTIONS);
      default:
        throw new IllegalArgumentException(request.toString());
    }
  }

  private static Identifier identifier(JsonNode request) {
    return Identifier.create("db", request.get("table").asText());
  }

  private FileStoreTable table(JsonNode request) throws Exception {
    return (FileStoreTable) catalog.getTable(identifier(request));
  }

  private static Object write(FileStoreTable table, JsonNode request) throws Exception {
    BatchWriteBuilder builder = table.newBatchWriteBuilder();
    JsonNode overwrite = request.get("overwrite");
    if (overwrite != null && !overwrite.isNull()) {
      Map<String, String> partition = new LinkedHashMap<>();
      overwrite.fields().forEachRemaining(e -> partition.put(e.getKey(), e.getValue().asText()));
      builder = builder.withOverwrite(partition);
    }
    IOManager files = IOManager.create(System.getProperty("java.io.tmpdir"));
    try (BatchTableWrite write = builder.newWrite();
        BatchTableCommit commit = builder.newCommit()) {
      write.withIOManager(files);
      for (JsonNode row : request.get("rows")) {
        write.write((InternalRow) toPaimon(row, table.rowType()));
      }
      commit.commit(write.prepareCommit());
    } finally {
      files.close();
    }
    return table.snapshotManager().latestSnapshotId();
  }

  private static List<Object> read(FileStoreTable table) throws Exception {
    RowType type = table.rowType();
    List<InternalRow.FieldGetter> getters = new ArrayList<>();
    for (int at = 0; at < type.getFieldCount(); at++) {
      getters.add(InternalRow.createFieldGetter(type.getTypeAt(at), at));
    }
    List<Object> rows = new ArrayList<>();
    ReadBuilder builder = table.newReadBuilder();
    try (RecordReader<InternalRow> reader =
        builder.newRead().createReader(builder.newScan().plan())) {
      reader.forEachRemaining(
          row -> {
            List<Object> values = new ArrayList<>();
            for (int at = 0; at < getters.size(); at++) {
              values.add(toJson(getters.get(at).getFieldOrNull(row), type.getTypeAt(at)));
            }
            rows.add(values);
          });
    }
    return rows;
  }

  /** Compacts bucket 0 of an unpartitioned table. */
  private static Object compact(FileStoreTable table) throws Exception {
    BatchWriteBuilder builder = table.newBatchWriteBuilder();
    IOManager files = IOManager.create(System.getProperty("java.io.tmpdir"));
    try (BatchTableWrite write = builder.newWrite();
        BatchTableCommit commit = builder.newCommit()) {
      write.withIOManager(files);
      write.compact(BinaryRow.EMPTY_ROW, 0, true);
      commit.commit(write.prepareCommit());
    } finally {
      files.close();
    }
    return table.snapshotManager().latestSnapshot().commitKind().toString();
  }

  /** Deletes a row of the first file of an unpartitioned append table by a deletion vector. */
  private static Object delete(FileStoreTable table, long position) throws Exception {
    Snapshot snapshot = table.snapshotManager().latestSnapshot();
    Split split = table.newReadBuilder().newScan().plan().splits().get(0);
    AppendDeleteFileMaintainer maintainer =
        BaseAppendDeleteFileMaintainer.forUnawareAppend(
            table.store().newIndexFileHandler(), snapshot, BinaryRow.EMPTY_ROW);
    BitmapDeletionVector vector = new BitmapDeletionVector();
    vector.delete(position);
    maintainer.notifyNewDeletionVector(
        ((DataSplit) split).dataFiles().get(0).fileName(), vector);
    List<IndexFileMeta> files = new ArrayList<>();
    for (IndexManifestEntry entry : maintainer.persist()) {
      files.add(entry.indexFile());
    }
    DataIncrement increment =
        new DataIncrement(
            Collections.emptyList(),
            Collections.emptyList(),
            Collections.emptyList(),
            files,
            Collections.emptyList());
    try (BatchTableCommit commit = table.newBatchWriteBuilder().newCommit()) {
      commit.commit(
          Collections.singletonList(
              new CommitMessageImpl(
                  BinaryRow.EMPTY_ROW, 0, -1, increment, CompactIncrement.emptyIncrement())));
    }
    return table.snapshotManager().latestSnapshotId();
  }

  private Object change(JsonNode request) throws Exception {
    List<SchemaChange> changes = new ArrayList<>();
    for (JsonNode one : request.get("changes")) {
      String[] path = text(one.get("path"));
      String value = one.hasNonNull("value") ? one.get("value").asText() : null;
      switch (one.get("kind").asText()) {
        case "add":
          changes.add(SchemaChange.addColumn(path, type(one.get("value")), null, null));
          break;
        case "drop":
          changes.add(SchemaChange.dropColumn(path));
          break;
        case "rename":
          changes.add(SchemaChange.renameColumn(path, value));
          break;
        case "retype":
          changes.add(SchemaChange.updateColumnType(path, type(one.get("value")), true));
          break;
        case "nullable":
          changes.add(SchemaChange.updateColumnNullability(path, one.get("value").asBoolean()));
          break;
        case "describe":
          changes.add(SchemaChange.updateColumnComment(path, value));
          break;
        case "default":
          changes.add(SchemaChange.updateColumnDefaultValue(path, value));
          break;
        case "first":
          changes.add(SchemaChange.updateColumnPosition(SchemaChange.Move.first(path[0])));
          break;
        case "after":
          changes.add(
              SchemaChange.updateColumnPosition(SchemaChange.Move.after(path[0], value)));
          break;
        case "set":
          changes.add(SchemaChange.setOption(path[0], value));
          break;
        case "unset":
          changes.add(SchemaChange.removeOption(path[0]));
          break;
        default:
          throw new IllegalArgumentException(one.toString());
      }
    }
    catalog.alterTable(identifier(request), changes, false);
    return table(request).schema().toString();
  }

  /** For every pair of types: whether the first casts implicitly, and explicitly, to the second. */
  private static List<Object> casts(JsonNode types) {
    List<Object> found = new ArrayList<>();
    for (JsonNode from : types) {
      for (JsonNode to : types) {
        DataType old = type(from);
        DataType next = type(to);
        boolean possible;
        try {
          possible = CastExecutors.resolve(old, next) != null;
        } catch (RuntimeException error) {
          possible = false;
        }
        found.add(
            List.of(
                possible && DataTypeCasts.supportsCast(old, next, false),
                possible && DataTypeCasts.supportsCast(old, next, true)));
      }
    }
    return found;
  }

  private static String[] text(JsonNode path) {
    List<String> names = new ArrayList<>();
    path.forEach(name -> names.add(name.asText()));
    return names.toArray(new String[0]);
  }

  private static DataType type(JsonNode node) {
    return DataTypeJsonParser.parseDataType(node);
  }

  private static Object toPaimon(JsonNode node, DataType type) {
    if (node.isNull()) {
      return null;
    }
    switch (type.getTypeRoot()) {
      case CHAR:
      case VARCHAR:
        return BinaryString.fromString(node.asText());
      case BOOLEAN:
        return node.asBoolean();
      case TINYINT:
        return (byte) node.asInt();
      case SMALLINT:
        return (short) node.asInt();
      case INTEGER:
        return node.asInt();
      case BIGINT:
        return node.asLong();
      case FLOAT:
        return Float.valueOf(node.asText());
      case DOUBLE:
        return Double.valueOf(node.asText());
      case BINARY:
      case VARBINARY:
        return HexFormat.of().parseHex(node.asText());
      case DECIMAL:
        DecimalType decimal = (DecimalType) type;
        return Decimal.fromBigDecimal(
            new BigDecimal(node.asText()), decimal.getPrecision(), decimal.getScale());
      case DATE:
        return (int) LocalDate.parse(node.asText()).toEpochDay();
      case TIME_WITHOUT_TIME_ZONE:
        return (int) (LocalTime.parse(node.asText()).toNanoOfDay() / 1_000_000);
      case TIMESTAMP_WITHOUT_TIME_ZONE:
        return Timestamp.fromLocalDateTime(LocalDateTime.parse(node.asText()));
      case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
        return Timestamp.fromInstant(Instant.parse(node.asText()));
      case ARRAY:
        List<Object> elements = new ArrayList<>();
        node.forEach(one -> elements.add(toPaimon(one, ((ArrayType) type).getElementType())));
        return new GenericArray(elements.toArray());
      case MAP:
      case MULTISET:
        Map<Object, Object> pairs = new LinkedHashMap<>();
        node.forEach(
            pair -> pairs.put(toPaimon(pair.get(0), key(type)), toPaimon(pair.get(1), value(type))));
        return new GenericMap(pairs);
      case ROW:
        List<DataField> fields = ((RowType) type).getFields();
        GenericRow row = new GenericRow(fields.size());
        for (int at = 0; at < fields.size(); at++) {
          row.setField(at, toPaimon(node.get(at), fields.get(at).type()));
        }
        return row;
      default:
        throw new IllegalArgumentException(type.toString());
    }
  }

  private static DataType key(DataType type) {
    return type instanceof MapType
        ? ((MapType) type).getKeyType()
        : ((MultisetType) type).getElementType();
  }

  private static DataType value(DataType type) {
    return type instanceof MapType ? ((MapType) type).getValueType() : DataTypes.INT();
  }

  private static Object toJson(Object value, DataType type) {
    if (value == null) {
      return null;
    }
    switch (type.getTypeRoot()) {
      case CHAR:
      case VARCHAR:
        return value.toString();
      case FLOAT:
      case DOUBLE:
        double number = ((Number) value).doubleValue();
        return Double.isFinite(number) ? (Object) number : String.valueOf(number);
      case BINARY:
      case VARBINARY:
        return HexFormat.of().formatHex((byte[]) value);
      case DECIMAL:
        return ((Decimal) value).toBigDecimal().toPlainString();
      case DATE:
        return LocalDate.ofEpochDay((Integer) value).toString();
      case TIME_WITHOUT_TIME_ZONE:
        return LocalTime.ofNanoOfDay((Integer) value * 1_000_000L)
            .format(DateTimeFormatter.ofPattern("HH:mm:ss.SSSSSS"));
      case TIMESTAMP_WITHOUT_TIME_ZONE:
        return ((Timestamp) value).toLocalDateTime().format(MICROSECONDS);
      case TIMESTAMP_WITH_LOCAL_TIME_ZONE:
        return LocalDateTime.ofInstant(((Timestamp) value).toInstant(), ZoneOffset.UTC)
                .format(MICROSECONDS)
            + "Z";
      case ARRAY:
        return elements((InternalArray) value, ((ArrayType) type).getElementType());
      case MAP:
      case MULTISET:
        InternalMap map = (InternalMap) value;
        List<Object> keys = elements(map.keyArray(), key(type));
        List<Object> values = elements(map.valueArray(), value(type));
        List<Object> pairs = new ArrayList<>();
        for (int at = 0; at < keys.size(); at++) {
          pairs.add(Arrays.asList(keys.get(at), values.get(at)));
        }
        return pairs;
      case ROW:
        List<DataField> fields = ((RowType) type).getFields();
        List<Object> inner = new ArrayList<>();
        for (int at = 0; at < fields.size(); at++) {
          DataType kind = fields.get(at).type();
          Object found = InternalRow.createFieldGetter(kind, at).getFieldOrNull((InternalRow) value);
          inner.add(toJson(found, kind));
        }
        return inner;
      default:
        return value;
    }
  }

  private static List<Object> elements(InternalArray array, DataType type) {
    InternalArray.ElementGetter getter = InternalArray.createElementGetter(type);
    List<Object> found = new ArrayList<>();
    for (int at = 0; at < array.size(); at++) {
      found.add(toJson(getter.getElementOrNull(array, at), type));
    }
    return found;
  }
}
