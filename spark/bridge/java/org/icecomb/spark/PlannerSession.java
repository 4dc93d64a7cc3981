package org.icecomb.spark;

import java.util.Map;
import java.util.function.Function;
import org.apache.spark.sql.SparkSession;
import org.icecomb.spark.planner.Planner;
import org.icecomb.spark.planner.Protocol.Environment;
import org.icecomb.spark.planner.Protocol.OpenCatalog;
import org.icecomb.spark.planner.Protocol.OpenedCatalog;
import org.icecomb.spark.planner.Protocol.Request;

/**
 * One configured catalog in the planner: gives its handle to requests and opens it again when
 * the planner process was replaced.
 */
public final class PlannerSession {

  private final String catalogName;
  private final Map<String, String> options;
  private final Planner planner;
  private int generation = -1;
  private String handle;
  private String[] defaultNamespace;
  private String version;

  PlannerSession(String catalogName, Map<String, String> options) {
    this.catalogName = catalogName;
    this.options = options;
    this.planner = Planner.of(python(options));
  }

  /** The driver's own Python if it is one, so that what users installed is what runs. */
  private static String python(Map<String, String> options) {
    if (options.containsKey("python")) {
      return options.get("python");
    }
    for (String variable :
        new String[] {"ICECOMB_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"}) {
      String value = System.getenv(variable);
      if (value != null && !value.isEmpty() && !isNotebook(value)) {
        return value;
      }
    }
    return "python3";
  }

  /** PYSPARK_DRIVER_PYTHON is often a front end such as jupyter, which cannot run a module. */
  private static boolean isNotebook(String command) {
    String name = command.substring(command.lastIndexOf('/') + 1);
    return name.startsWith("jupyter") || name.startsWith("ipython");
  }

  /**
   * Asks about this catalog.
   *
   * @param making makes the request of the catalog's handle
   */
  public <T extends Record> T ask(Function<String, Request> making, Class<T> kind) {
    return planner.ask(() -> making.apply(handle()), kind);
  }

  synchronized String[] defaultNamespace() {
    handle();
    return defaultNamespace;
  }

  /** What serves the catalog. */
  synchronized String version() {
    handle();
    return version;
  }

  private synchronized String handle() {
    int current = planner.generation();
    if (current != generation) {
      OpenedCatalog opened = planner.ask(this::description, OpenedCatalog.class);
      handle = opened.catalog();
      defaultNamespace = opened.defaultNamespace().toArray(new String[0]);
      version = opened.version();
      generation = current;
    }
    return handle;
  }

  private OpenCatalog description() {
    SparkSession spark = SparkSession.active();
    String metastore = spark.sessionState().newHadoopConf().get("hive.metastore.uris");
    return new OpenCatalog(
        catalogName,
        options,
        new Environment(
            metastore == null || metastore.isEmpty() ? null : metastore,
            spark.sparkContext().applicationId(),
            spark.version()));
  }
}
