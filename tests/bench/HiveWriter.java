import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.parquet.GenericParquetWriter;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.io.DataWriter;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.parquet.Parquet;

/**
 * One writer of `contention`: the reference implementation through its own HiveCatalog.
 *
 * <p>{@code HiveWriter URI WAREHOUSE TABLE FIRST THREADS TIMES}: says that it is ready, waits for a
 * line, appends, and says what became of it, as JSON. Each thread has a catalog of its own.
 */
public final class HiveWriter implements Runnable {
  private static final OperatingSystemMXBean PROCESS =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
  private static final long PATIENCE_NANOS = 120_000_000_000L;

  private final Table table;
  private final long first;
  private final int times;
  private final List<Long> done = new ArrayList<>();
  private final List<String> errors = new ArrayList<>();
  private double slowest;

  private HiveWriter(Table table, long first, int times) {
    this.table = table;
    this.first = first;
    this.times = times;
  }

  public static void main(String[] arguments) throws Exception {
    int threads = Integer.parseInt(arguments[4]);
    long first = Long.parseLong(arguments[3]);
    String[] name = arguments[2].split("\\.");
    List<HiveWriter> writers = new ArrayList<>();
    for (int number = 0; number < threads; number++) {
      HiveCatalog catalog = new HiveCatalog();
      catalog.setConf(new Configuration());
      catalog.initialize("bench", Map.of("uri", arguments[0], "warehouse", arguments[1]));
      Table table = catalog.loadTable(TableIdentifier.of(name[0], name[1]));
      TableIdentifier own =
          TableIdentifier.of(name[0], "own_" + (first + number) + "_" + name[1]);
      append(catalog.createTable(own, table.schema()), 0);
      writers.add(
          new HiveWriter(table, (first + number) * 1000, Integer.parseInt(arguments[5])));
    }
    System.out.println("ready");
    new BufferedReader(new InputStreamReader(System.in)).readLine();
    long cpu = PROCESS.getProcessCpuTime();
    List<Thread> running = writers.stream().map(Thread::new).toList();
    running.forEach(Thread::start);
    for (Thread each : running) {
      each.join();
    }
    print(writers, (PROCESS.getProcessCpuTime() - cpu) / 1e9);
    System.exit(0);
  }

  @Override
  public void run() {
    long began = System.nanoTime();
    for (int turn = 0; turn < times; turn++) {
      long since = System.nanoTime();
      if (since - began > PATIENCE_NANOS) {
        errors.add("out of time");
        continue;
      }
      try {
        append(table, first + turn);
        done.add(first + turn);
      } catch (Exception error) {
        errors.add(error.getClass().getSimpleName());
        table.refresh();
      }
      slowest = Math.max(slowest, (System.nanoTime() - since) / 1e9);
    }
  }

  private static void append(Table table, long row) throws IOException {
    Schema schema = table.schema();
    OutputFile file =
        table
            .io()
            .newOutputFile(table.locationProvider().newDataLocation(UUID.randomUUID() + ".parquet"));
    DataWriter<GenericRecord> writer =
        Parquet.writeData(file)
            .forTable(table)
            .createWriterFunc(type -> GenericParquetWriter.create(schema, type))
            .withSpec(table.spec())
            .overwrite()
            .build();
    try (writer) {
      writer.write(GenericRecord.create(schema).copy(Map.of("id", row, "s", "x")));
    }
    table.newFastAppend().appendFile(writer.toDataFile()).commit();
  }

  private static void print(List<HiveWriter> writers, double cpuS) {
    String done =
        writers.stream()
            .flatMap(each -> each.done.stream())
            .map(String::valueOf)
            .collect(Collectors.joining(", "));
    String errors =
        writers.stream()
            .flatMap(each -> each.errors.stream())
            .map(each -> '"' + each + '"')
            .collect(Collectors.joining(", "));
    double slowest = writers.stream().mapToDouble(each -> each.slowest).max().orElse(0);
    System.out.println(
        String.format(
            Locale.ROOT,
            "{\"done\": [%s], \"errors\": [%s], \"ended\": %.3f, \"slowest\": %.3f, \"cpu_s\": %.3f}",
            done, errors, System.currentTimeMillis() / 1e3, slowest, cpuS));
  }
}
