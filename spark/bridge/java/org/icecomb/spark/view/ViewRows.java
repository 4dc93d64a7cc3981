package org.icecomb.spark.view;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.GlobalTempViewManager;
import org.apache.spark.sql.catalyst.catalog.SessionCatalog;
import org.apache.spark.sql.catalyst.util.StringUtils;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.StaticSQLConf;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.planner.Protocol.ListViews;
import org.icecomb.spark.planner.Protocol.TableNames;
import org.icecomb.spark.planner.Protocol.ViewDescription;
import org.icecomb.spark.statement.StatementCatalog;
import org.icecomb.spark.statement.CommandPlan;
import scala.Option;
import scala.collection.JavaConverters;

/**
 * Rows of SHOW and DESCRIBE for views, like those of Spark 4.2, which supports views of catalogs.
 */
final class ViewRows {

  /** Properties that are shown separately. */
  private static final Set<String> PLACED = Set.of("comment", "owner");

  /** Properties that a statement cannot set. */
  private static final Set<String> RESERVED = Set.of("location", "provider", "format-version");

  private ViewRows() {}

  /** Views of a namespace and, as usual in Spark, the temporary ones of the session. */
  static List<Row> list(
      SparkSession session,
      StatementCatalog catalog,
      List<String> namespace,
      Option<String> pattern) {
    SessionCatalog sessions = session.sessionState().catalog();
    GlobalTempViewManager global = sessions.globalTempViewManager();
    String database = SQLConf.get().getConfString(StaticSQLConf.GLOBAL_TEMP_DATABASE().key());
    String wanted = pattern.isEmpty() ? "*" : pattern.get();
    List<Row> rows = new ArrayList<>();
    if (!namespace.isEmpty() && namespace.get(0).equals(database)) {
      JavaConverters.seqAsJavaList(global.listViewNames(wanted))
          .forEach(name -> rows.add(RowFactory.create(database, name, true)));
    } else {
      String shown = String.join(".", namespace);
      JavaConverters.seqAsJavaList(
              StringUtils.filterPattern(CommandPlan.list(names(catalog, namespace)), wanted))
          .forEach(name -> rows.add(RowFactory.create(shown, name, false)));
    }
    JavaConverters.seqAsJavaList(sessions.listLocalTempViews(wanted))
        .forEach(view -> rows.add(RowFactory.create("", view.table(), true)));
    return rows;
  }

  private static List<String> names(StatementCatalog catalog, List<String> namespace) {
    try {
      return catalog
          .session()
          .ask(c -> new ListViews(c, namespace), TableNames.class)
          .tables()
          .stream()
          .map(view -> view.name())
          .toList();
    } catch (PlannerException e) {
      throw SparkErrors.ofNamespace(e, namespace.toArray(new String[0]));
    }
  }

  static List<Row> describe(ViewName view, boolean extended) {
    ViewDescription found = ViewChanges.loaded(view);
    List<Row> rows = new ArrayList<>();
    for (StructField column : schema(found).fields()) {
      String comment = column.getComment().isDefined() ? column.getComment().get() : "";
      rows.add(
          RowFactory.create(column.name(), column.dataType().simpleString(), comment));
    }
    if (extended) {
      Map<String, String> properties = found.properties();
      rows.add(RowFactory.create("", "", ""));
      rows.add(RowFactory.create("# Detailed View Information", "", ""));
      add(rows, "Catalog", view.catalog().name());
      add(rows, "Namespace", String.join(".", view.name().namespace()));
      add(rows, "View", view.name().name());
      add(rows, "Type", "VIEW");
      add(rows, "Owner", properties.get("owner"));
      add(rows, "Comment", properties.get("comment"));
      add(rows, "Location", properties.get("location"));
      add(rows, "View Text", found.query());
      add(rows, "View Current Catalog", found.currentCatalog());
      add(rows, "View Current Namespace", String.join(".", found.currentNamespace()));
      add(rows, "View Query Output Columns", found.queryColumns().toString());
      String shown =
          visible(found).entrySet().stream()
              .map(each -> each.getKey() + "=" + each.getValue())
              .collect(Collectors.joining(", ", "[", "]"));
      add(rows, "Properties", shown);
    }
    return rows;
  }

  private static void add(List<Row> rows, String name, String value) {
    if (value != null) {
      rows.add(RowFactory.create(name, value, ""));
    }
  }

  static List<Row> properties(ViewName view, Option<String> key) {
    Map<String, String> found = new TreeMap<>(ViewChanges.loaded(view).properties());
    found.keySet().removeAll(PLACED);
    if (key.isEmpty()) {
      return found.entrySet().stream()
          .map(each -> RowFactory.create(each.getKey(), each.getValue()))
          .toList();
    }
    String value = found.get(key.get());
    String missing = "View " + view + " does not have property: " + key.get();
    return List.of(RowFactory.create(key.get(), value == null ? missing : value));
  }

  static List<Row> columns(ViewName view) {
    return Arrays.stream(schema(ViewChanges.loaded(view)).fieldNames())
        .map(RowFactory::create)
        .toList();
  }

  static List<Row> create(ViewName view) {
    ViewDescription found = ViewChanges.loaded(view);
    StringBuilder text = new StringBuilder("CREATE VIEW ");
    text.append(String.join(".", view.parts().stream().map(ViewRows::quotedIfNeeded).toList()));
    text.append(
        Arrays.stream(schema(found).fields())
            .map(ViewRows::column)
            .collect(Collectors.joining(",\n  ", " (\n  ", ")\n")));
    String comment = found.properties().get("comment");
    if (comment != null) {
      text.append("COMMENT ").append(literal(comment)).append('\n');
    }
    Map<String, String> properties = visible(found);
    if (!properties.isEmpty()) {
      text.append(
          properties.entrySet().stream()
              .map(each -> literal(each.getKey()) + " = " + literal(each.getValue()))
              .collect(Collectors.joining(",\n  ", "TBLPROPERTIES (\n  ", ")\n")));
    }
    return List.of(RowFactory.create(text.append("AS ").append(found.query()).append('\n').toString()));
  }

  private static String column(StructField column) {
    String name = quotedIfNeeded(column.name());
    return column.getComment().isDefined()
        ? name + " COMMENT " + literal(column.getComment().get())
        : name;
  }

  private static String quotedIfNeeded(String part) {
    return part.matches("[a-zA-Z_][a-zA-Z0-9_]*") ? part : "`" + part.replace("`", "``") + "`";
  }

  private static String literal(String text) {
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'";
  }

  private static Map<String, String> visible(ViewDescription view) {
    Map<String, String> shown = new TreeMap<>(view.properties());
    shown.keySet().removeAll(PLACED);
    shown.keySet().removeAll(RESERVED);
    return shown;
  }

  static StructType schema(ViewDescription view) {
    return Schemas.visible(Schemas.parse(view.schema()));
  }
}
