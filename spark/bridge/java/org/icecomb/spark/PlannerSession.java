package org.icecomb.spark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Planner;

/**
 * One configured catalog in the planner: adds its handle to every request and opens it again when
 * the planner process was replaced.
 */
public final class PlannerSession {

  private final String catalogName;
  private final Map<String, String> options;
  private final Planner planner;
  private int generation = -1;
  private String handle;
  private String[] defaultNamespace;

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

  /** The request's parameters without the catalog's handle, which is added here. */
  public JsonNode ask(String method, ObjectNode parameters) {
    return planner.ask(method, () -> parameters.put("catalog", handle()));
  }

  synchronized String[] defaultNamespace() {
    handle();
    return defaultNamespace;
  }

  private synchronized String handle() {
    int current = planner.generation();
    if (current != generation) {
      JsonNode answer = planner.ask("open_catalog", this::description);
      handle = answer.get("catalog").asText();
      defaultNamespace = Json.names(answer.get("default_namespace"));
      generation = current;
    }
    return handle;
  }

  private ObjectNode description() {
    ObjectNode parameters = Json.object().put("name", catalogName);
    parameters.set("options", Json.object(options));
    ObjectNode environment = parameters.putObject("environment");
    SparkSession spark = SparkSession.active();
    Configuration hadoop = spark.sessionState().newHadoopConf();
    String metastore = hadoop.get("hive.metastore.uris");
    if (metastore != null && !metastore.isEmpty()) {
      environment.put("hive.metastore.uris", metastore);
    }
    environment.put("spark.app.id", spark.sparkContext().applicationId());
    environment.put("spark.version", spark.version());
    environment.put("user", spark.sparkContext().sparkUser());
    return parameters;
  }
}
