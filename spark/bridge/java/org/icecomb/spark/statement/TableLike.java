package org.icecomb.spark.statement;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.catalog.CatalogUtils;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogManager;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.CatalogV2Util;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCatalog;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.SparkErrors;
import scala.collection.JavaConverters;

/**
 * Execution of CREATE TABLE … LIKE if Spark itself does not call the catalog: the other table is
 * looked up when the statement runs, and the new one is created by its catalog.
 */
final class TableLike {

  private final SparkSession session;
  private final List<String> target;
  private final List<String> source;
  private final CreateTableLikeCommand clauses;

  /**
   * @param target the name of the new table
   * @param source the name of the table or view to copy
   * @param clauses the rest of the statement, as parsed by Spark
   */
  TableLike(
      SparkSession session,
      List<String> target,
      List<String> source,
      CreateTableLikeCommand clauses) {
    this.session = session;
    this.target = target;
    this.source = source;
    this.clauses = clauses;
  }

  /** Whether icecomb creates the new table; others in the session catalog are Spark's. */
  boolean isOurs() {
    StatementCatalog catalog = StatementCatalog.find(session, target);
    return catalog != null
        && catalog.makesLike(
            clauses.provider().isDefined() ? clauses.provider().get() : null,
            clauses.provider().isDefined() ? null : source());
  }

  LogicalPlan command() {
    return new StatementCommand(
        "CreateTableLike", String.join(".", target), new StructType(), running -> run());
  }

  private List<Row> run() {
    if (clauses.fileFormat().serde().isDefined()
        || clauses.fileFormat().inputFormat().isDefined()) {
      throw SparkErrors.unsupported(
          "CREATE TABLE "
              + String.join(".", target)
              + " LIKE … with STORED AS or ROW FORMAT: files of an Iceberg table have no SerDe",
          "Leave the clause out; the property write.format.default sets the file format.");
    }
    try {
      Identifier table = identifier(target);
      StatementCatalog catalog = StatementCatalog.find(session, target);
      if (clauses.ifNotExists() && catalog.tableExists(table)) {
        return List.of();
      }
      Table known = source();
      StructType columns =
          known == null
              ? session.table(quoted(source)).schema()
              : CatalogV2Util.v2ColumnsToStructType(known.columns());
      Transform[] partitions = known == null ? new Transform[0] : known.partitioning();
      catalog.createLike(table, columns, partitions, properties(), known);
    } catch (TableAlreadyExistsException e) {
      if (!clauses.ifNotExists()) {
        throw SparkErrors.unchecked(e);
      }
    } catch (NoSuchNamespaceException e) {
      throw SparkErrors.unchecked(e);
    }
    return List.of();
  }

  private Map<String, String> properties() {
    Map<String, String> given =
        new HashMap<>(
            JavaConverters.mapAsJavaMap(
                CatalogV2Util.withDefaultOwnership(clauses.properties())));
    if (clauses.provider().isDefined()) {
      given.put(TableCatalog.PROP_PROVIDER, clauses.provider().get());
    }
    if (clauses.fileFormat().locationUri().isDefined()) {
      given.put(
          TableCatalog.PROP_LOCATION,
          CatalogUtils.URIToString(
              CatalogUtils.makeQualifiedPath(
                  clauses.fileFormat().locationUri().get(),
                  session.sessionState().newHadoopConf())));
    }
    return given;
  }

  /** The table to copy; null if the name is that of a view, or does not exist. */
  private Table source() {
    if (session.sessionState().catalog().isTempView(StatementCommand.list(source))) {
      return null;
    }
    CatalogManager catalogs = session.sessionState().catalogManager();
    CatalogPlugin catalog =
        StatementCatalog.isQualified(session, source)
            ? catalogs.catalog(source.get(0))
            : catalogs.currentCatalog();
    if (!(catalog instanceof TableCatalog tables)) {
      return null;
    }
    try {
      return tables.loadTable(identifier(source));
    } catch (NoSuchTableException e) {
      return null;
    }
  }

  private static String quoted(List<String> name) {
    return name.stream()
        .map(part -> "`" + part.replace("`", "``") + "`")
        .collect(Collectors.joining("."));
  }

  private Identifier identifier(List<String> parts) {
    List<String> path =
        StatementCatalog.isQualified(session, parts) ? parts.subList(1, parts.size()) : parts;
    String[] namespace =
        parts.size() == 1
            ? session.sessionState().catalogManager().currentNamespace()
            : path.subList(0, path.size() - 1).toArray(new String[0]);
    return Identifier.of(namespace, path.get(path.size() - 1));
  }
}
