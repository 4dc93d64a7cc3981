package org.icecomb.spark;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.SupportsCatalogOptions;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.JavaConverters;

/**
 * Tables by {@code spark.read.format("icecomb").load(...)} and the like: a table's name, with or
 * without its catalog, or its location, which contains a slash.
 *
 * <p>A name without a catalog belongs to the current catalog if it is one of icecomb's, else to the
 * only icecomb catalog that the session configures, else to {@link #DEFAULT}, which takes its
 * metastore from Spark's own settings.
 */
public class TableSource implements SupportsCatalogOptions {

  private static final String DEFAULT = "default_icecomb";
  private static final String CATALOGS = "spark.sql.catalog.";
  private static final String OURS = TableSource.class.getPackageName() + ".";

  @Override
  public String extractCatalog(CaseInsensitiveStringMap options) {
    return Target.of(options).catalog();
  }

  @Override
  public Identifier extractIdentifier(CaseInsensitiveStringMap options) {
    return Target.of(options).table();
  }

  @Override
  public Optional<String> extractTimeTravelVersion(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("versionAsOf"));
  }

  @Override
  public Optional<String> extractTimeTravelTimestamp(CaseInsensitiveStringMap options) {
    return Optional.ofNullable(options.get("timestampAsOf"));
  }

  @Override
  public StructType inferSchema(CaseInsensitiveStringMap options) {
    return load(options).schema();
  }

  @Override
  public Transform[] inferPartitioning(CaseInsensitiveStringMap options) {
    return load(options).partitioning();
  }

  /** The table for streams, of which Spark does not know the catalog. */
  @Override
  public Table getTable(
      StructType schema, Transform[] partitioning, Map<String, String> properties) {
    Table found = load(new CaseInsensitiveStringMap(properties));
    return found instanceof IcecombTable table ? table.withoutFunctions() : found;
  }

  @Override
  public boolean supportsExternalMetadata() {
    return true;
  }

  private static Table load(CaseInsensitiveStringMap options) {
    Target target = Target.of(options);
    CatalogManager catalogs = SparkSession.active().sessionState().catalogManager();
    try {
      return ((TableCatalog) catalogs.catalog(target.catalog())).loadTable(target.table());
    } catch (NoSuchTableException e) {
      throw SparkErrors.unchecked(e);
    }
  }

  /** The table named by options. */
  private record Target(String catalog, Identifier table) {

    static Target of(CaseInsensitiveStringMap options) {
      String path = options.get("path");
      if (path == null || path.isBlank()) {
        throw SparkErrors.unsupported(
            "No table is named",
            "Use load(\"catalog.namespace.table\") or load(\"/folder\"); tables are made in a "
                + "catalog of icecomb's, or in Spark's own where that is one: "
                + "spark.sql.catalog.spark_catalog="
                + IcecombSessionCatalog.class.getName());
      }
      SparkSession spark = SparkSession.active();
      CatalogManager catalogs = spark.sessionState().catalogManager();
      if (path.contains("/")) {
        return new Target(chosen(spark, path), Identifier.of(new String[0], path));
      }
      List<String> parts = parts(spark, path);
      String catalog =
          parts.size() > 1 && catalogs.isCatalogRegistered(parts.get(0))
              ? parts.remove(0)
              : chosen(spark, path);
      String name = parts.remove(parts.size() - 1);
      String[] namespace =
          parts.isEmpty() ? catalogs.currentNamespace() : parts.toArray(new String[0]);
      return new Target(catalog, Identifier.of(namespace, name));
    }

    private static List<String> parts(SparkSession spark, String name) {
      try {
        return new ArrayList<>(
            JavaConverters.seqAsJavaList(
                spark.sessionState().sqlParser().parseMultipartIdentifier(name)));
      } catch (Exception e) {
        // Spark's own error about the name, which not every version declares.
        throw SparkErrors.unchecked(e);
      }
    }

    private static String chosen(SparkSession spark, String path) {
      CatalogManager catalogs = spark.sessionState().catalogManager();
      if (catalogs.currentCatalog().getClass().getName().startsWith(OURS)) {
        return catalogs.currentCatalog().name();
      }
      TreeSet<String> configured = new TreeSet<>();
      JavaConverters.mapAsJavaMap(spark.sessionState().conf().getAllConfs())
          .forEach(
              (key, value) -> {
                String name = key.startsWith(CATALOGS) ? key.substring(CATALOGS.length()) : ".";
                if (!name.contains(".") && value.startsWith(OURS)) {
                  configured.add(name);
                }
              });
      if (configured.size() > 1) {
        throw SparkErrors.unsupported(
            "Table " + path + " may be in any of the catalogs " + String.join(", ", configured),
            "Name the catalog: " + configured.first() + "." + path + ", or USE one of them.");
      }
      if (configured.isEmpty()) {
        spark.conf().set(CATALOGS + DEFAULT, IcecombCatalog.class.getName());
        return DEFAULT;
      }
      return configured.first();
    }
  }
}
