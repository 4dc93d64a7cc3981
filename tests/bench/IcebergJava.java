import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.AppendFiles;
import org.apache.iceberg.BaseTable;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.FileFormat;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.Metrics;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.StaticTableOperations;
import org.apache.iceberg.Table;
import org.apache.iceberg.expressions.Expression;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.hadoop.HadoopFileIO;
import org.apache.iceberg.hadoop.HadoopTables;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.types.Types;

/**
 * The reference implementation on a plain JVM; prints its figures as one JSON line.
 *
 * <p>plan METADATA_JSON PLANS [COLUMN OPERATOR LITERAL]...: plans a table, and looks at every file.
 *
 * <p>files LOCATION FILES COLUMNS: commits that many data files with metrics to a new table.
 */
public final class IcebergJava {
  private static final OperatingSystemMXBean PROCESS =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private IcebergJava() {}

  public static void main(String[] arguments) throws IOException {
    double startS =
        (System.currentTimeMillis() - ManagementFactory.getRuntimeMXBean().getStartTime()) / 1e3;
    double startCpuS = cpuS();
    if (arguments[0].equals("plan")) {
      plan(arguments, startS, startCpuS);
    } else {
      commit(arguments[1], Integer.parseInt(arguments[2]), Integer.parseInt(arguments[3]));
    }
  }

  private static void plan(String[] arguments, double startS, double startCpuS)
      throws IOException {
    double since = wallS();
    Table table =
        new BaseTable(
            new StaticTableOperations(arguments[1], new HadoopFileIO(new Configuration())), "t");
    table.schema();
    double openS = wallS() - since;
    Expression filter = Expressions.alwaysTrue();
    for (int at = 3; at < arguments.length; at += 3) {
      filter =
          Expressions.and(
              filter, predicate(arguments[at], arguments[at + 1], arguments[at + 2]));
    }
    List<Double> plans = new ArrayList<>();
    long files = 0;
    double coldCpuS = 0;
    double warmCpuS = 0;
    double processCpuS = 0;
    for (int round = 0; round < Integer.parseInt(arguments[2]); round++) {
      double cpu = cpuS();
      since = wallS();
      files = 0;
      try (CloseableIterable<FileScanTask> tasks = table.newScan().filter(filter).planFiles()) {
        for (FileScanTask task : tasks) {
          files += task.file().location().isEmpty() ? 0 : 1;
        }
      }
      plans.add(wallS() - since);
      warmCpuS = cpuS() - cpu;
      if (round == 0) {
        processCpuS = cpuS();
        coldCpuS = processCpuS - cpu;
      }
    }
    double coldS = plans.get(0);
    print(
        "files", files,
        "import_s", startS,
        "open_s", openS,
        "cold_s", coldS,
        "cold_cpu_s", coldCpuS,
        "process_s", startS + openS + coldS,
        "process_cpu_s", processCpuS,
        "warm_s", plans.get(plans.size() - 1),
        "warm_cpu_s", warmCpuS,
        "peak_mb", peakMb());
  }

  private static Expression predicate(String column, String operator, String literal) {
    Object value = literal.matches("-?\\d+") ? (Object) Long.valueOf(literal) : literal;
    return switch (operator) {
      case ">=" -> Expressions.predicate(Expression.Operation.GT_EQ, column, value);
      case "<" -> Expressions.predicate(Expression.Operation.LT, column, value);
      case "<=" -> Expressions.predicate(Expression.Operation.LT_EQ, column, value);
      default -> throw new IllegalArgumentException(operator);
    };
  }

  private static void commit(String location, int files, int columns) throws IOException {
    List<Types.NestedField> fields = new ArrayList<>();
    for (int id = 1; id <= columns; id++) {
      fields.add(Types.NestedField.optional(id, "c" + id, Types.LongType.get()));
    }
    Table table =
        new HadoopTables(new Configuration())
            .create(new Schema(fields), PartitionSpec.unpartitioned(), location);
    table.newFastAppend().appendFile(file(files, columns)).commit();
    List<DataFile> many = new ArrayList<>();
    for (int number = 0; number < files; number++) {
      many.add(file(number, columns));
    }
    double cpu = cpuS();
    double since = wallS();
    AppendFiles append = table.newFastAppend();
    many.forEach(append::appendFile);
    append.commit();
    print(
        "files", Long.parseLong(table.currentSnapshot().summary().get("total-data-files")) - 1,
        "commit_s", wallS() - since,
        "commit_cpu_s", cpuS() - cpu,
        "peak_mb", peakMb());
  }

  private static DataFile file(long number, int columns) {
    Map<Integer, Long> sizes = new HashMap<>();
    Map<Integer, Long> counts = new HashMap<>();
    Map<Integer, Long> nulls = new HashMap<>();
    Map<Integer, ByteBuffer> lower = new HashMap<>();
    Map<Integer, ByteBuffer> upper = new HashMap<>();
    for (int id = 1; id <= columns; id++) {
      sizes.put(id, 300_000 + number);
      counts.put(id, 100_000L);
      nulls.put(id, number % 100);
      lower.put(id, bound(number));
      upper.put(id, bound(number + 1000));
    }
    return DataFiles.builder(PartitionSpec.unpartitioned())
        .withPath(String.format(Locale.ROOT, "file:///nowhere/%08d.parquet", number))
        .withFormat(FileFormat.PARQUET)
        .withFileSizeInBytes(8_000_000 + number)
        .withMetrics(
            new Metrics(100_000L, sizes, counts, nulls, Collections.emptyMap(), lower, upper))
        .build();
  }

  private static ByteBuffer bound(long value) {
    return ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(0, value);
  }

  private static double wallS() {
    return System.nanoTime() / 1e9;
  }

  private static double cpuS() {
    return PROCESS.getProcessCpuTime() / 1e9;
  }

  private static double peakMb() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmHWM")) {
        return Long.parseLong(line.replaceAll("\\D", "")) / 1024.0;
      }
    }
    throw new IOException("no VmHWM");
  }

  private static void print(Object... figures) {
    StringBuilder line = new StringBuilder("RESULT {");
    for (int at = 0; at < figures.length; at += 2) {
      line.append(at == 0 ? "" : ", ").append('"').append(figures[at]).append("\": ");
      line.append(
          figures[at + 1] instanceof Double number
              ? String.format(Locale.ROOT, "%.5f", number)
              : figures[at + 1]);
    }
    System.out.println(line.append('}'));
  }
}
