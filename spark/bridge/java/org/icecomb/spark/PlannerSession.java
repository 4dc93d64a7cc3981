package org.icecomb.spark;

import java.io.File;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkFiles;
import org.apache.spark.sql.SparkSession;
import org.icecomb.spark.planner.Planner;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.Done;
import org.icecomb.spark.planner.Protocol.Environment;
import org.icecomb.spark.planner.Protocol.Identity;
import org.icecomb.spark.planner.Protocol.OpenCatalog;
import org.icecomb.spark.planner.Protocol.OpenedCatalog;
import org.icecomb.spark.planner.Protocol.Request;

/**
 * One configured catalog in the planner: supplies its handle to requests and opens it again after
 * the planner process was replaced. Each user of a server that impersonates users has a handle.
 */
public final class PlannerSession {

  private final String catalogName;
  private final Map<String, String> options;
  private final Planner planner;
  private final ReentrantLock opening = new ReentrantLock();
  private int generation = -1;
  private final Map<String, Opened> opened = new HashMap<>();
  private Environment environment;

  PlannerSession(String catalogName, Map<String, String> options) {
    this.catalogName = catalogName;
    this.options = options;
    this.planner = Planner.of(python(options));
  }

  /**
   * Starts the planner of a catalog without waiting for it.
   *
   * @param options the catalog's options
   */
  static void startAhead(Map<String, String> options) {
    Planner.of(python(options)).startAhead();
  }

  /** The driver's own Python if there is one, so that the packages installed by users are used. */
  private static String python(Map<String, String> options) {
    if (options.containsKey("python")) {
      return unpacked(options.get("python"));
    }
    for (String variable :
        new String[] {"ICECOMB_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"}) {
      String value = System.getenv(variable);
      if (value != null && !value.isEmpty() && !isNotebook(value)) {
        return unpacked(value);
      }
    }
    return "python3";
  }

  /**
   * The interpreter in an archive ({@code --archives env.tar.gz#env}): YARN unpacks archives into
   * the driver's working directory, Spark itself into a folder of its own, which comes first: others may write to the
   * directory that a user starts Spark in.
   */
  private static String unpacked(String python) {
    if (python.startsWith("/") || !python.contains("/")) {
      return python;
    }
    File unpacked = new File(SparkFiles.getRootDirectory(), python);
    return unpacked.exists() ? unpacked.getAbsolutePath() : python;
  }

  /** PYSPARK_DRIVER_PYTHON is often a front end such as jupyter, which cannot run a module. */
  private static boolean isNotebook(String command) {
    String name = command.substring(command.lastIndexOf('/') + 1);
    return name.startsWith("jupyter") || name.startsWith("ipython");
  }

  /**
   * Sends a request about this catalog.
   *
   * @param making creates the request from the catalog's handle
   */
  public <T extends Record> T ask(Function<String, Request> making, Class<T> kind) {
    return planner.ask(() -> making.apply(handle()), kind);
  }

  /**
   * Sends a request about this catalog whose answer has pages.
   *
   * @param page the class of pages
   * @param begun supplies a consumer of the pages, again if the request is repeated
   */
  public <P extends Record, T extends Record> T ask(
      Function<String, Request> making, Class<P> page, Supplier<Consumer<P>> begun, Class<T> kind) {
    return planner.ask(() -> making.apply(handle()), page, begun, kind);
  }

  /** Sends a cleanup request even if the thread was interrupted; it still is afterwards. */
  public void cleanUp(Function<String, Request> making) {
    boolean interrupted = Thread.interrupted();
    try {
      ask(making, Done.class);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Whether the same process serves another catalog, so that it knows that one's references. */
  boolean isBeside(PlannerSession other) {
    return planner == other.planner;
  }

  /** The catalog's name in the session. */
  String catalogName() {
    return catalogName;
  }

  String[] defaultNamespace() {
    return opened().defaultNamespace().toArray(new String[0]);
  }

  /** The version of icecomb that serves the catalog. */
  String version() {
    return opened().version();
  }

  /** Spark's Hadoop configuration with the catalog's own settings, for tasks. */
  public Configuration hadoop() {
    Configuration conf = HadoopSettings.of(SparkSession.active(), options);
    opened().hadoop().forEach(conf::set);
    return conf;
  }

  private String handle() {
    return opened().catalog();
  }

  /** The catalog of the current user, opened on first use and when the user's tokens change. */
  private OpenedCatalog opened() {
    Identity user = HadoopUser.current();
    try {
      // Its holder may be waiting for the planner for any length of time.
      opening.lockInterruptibly();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw PlannerException.canceled("open_catalog", e);
    }
    try {
      reopenAfterRestart();
      Opened known = opened.get(HadoopUser.key(user));
      if (known == null || !known.user().equals(user)) {
        known = new Opened(user, open(user));
        opened.put(HadoopUser.key(user), known);
      }
      return known.catalog();
    } finally {
      opening.unlock();
    }
  }

  /** References pinned by statements name the catalogs of their users. */
  private void reopenAfterRestart() {
    int current = planner.generation();
    if (current == generation) {
      return;
    }
    List<Opened> before = List.copyOf(opened.values());
    opened.clear();
    generation = current;
    for (Opened each : before) {
      opened.put(HadoopUser.key(each.user()), new Opened(each.user(), open(each.user())));
    }
  }

  private OpenedCatalog open(Identity user) {
    return planner.ask(() -> description(user), OpenedCatalog.class);
  }

  /** Keeps the settings of the first call: they are part of the handle's name. */
  private OpenCatalog description(Identity user) {
    if (environment == null) {
      SparkSession spark = SparkSession.active();
      Configuration hadoop = HadoopSettings.of(spark, options);
      String metastore = hadoop.get(HadoopSettings.METASTORE);
      String keytab = HadoopUser.keytab(spark.sparkContext());
      environment =
          new Environment(
              metastore == null || metastore.isEmpty() ? null : metastore,
              spark.sparkContext().applicationId(),
              spark.version(),
              HadoopSettings.stated(hadoop),
              keytab == null ? null : HadoopUser.principal(),
              keytab,
              spark.sparkContext().appName());
    }
    return new OpenCatalog(catalogName, options, environment, user);
  }

  private record Opened(Identity user, OpenedCatalog catalog) {}
}
