package org.icecomb.spark.view;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.catalyst.plans.logical.AlterViewAs;
import org.apache.spark.sql.catalyst.plans.logical.CreateView;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.AlterView;
import org.icecomb.spark.planner.Protocol.Done;
import org.icecomb.spark.planner.Protocol.DropView;
import org.icecomb.spark.planner.Protocol.Dropped;
import org.icecomb.spark.planner.Protocol.Exists;
import org.icecomb.spark.planner.Protocol.RenameView;
import org.icecomb.spark.planner.Protocol.ReplaceView;
import org.icecomb.spark.planner.Protocol.ViewDescription;
import org.icecomb.spark.planner.Protocol.ViewExists;
import scala.Option;
import scala.Tuple2;
import scala.collection.JavaConverters;

/** The statements that create, change and drop views. */
final class ViewChanges {

  /** Settings that change the meaning of a query, whose values are stored with the view. */
  private static final List<String> SETTINGS =
      List.of(
          "spark.sql.ansi.enabled",
          "spark.sql.caseSensitive",
          "spark.sql.mapKeyDedupPolicy",
          "spark.sql.legacy.timeParserPolicy",
          "spark.sql.session.timeZone");

  private ViewChanges() {}

  static List<Row> create(SparkSession session, ViewName view, CreateView wanted) {
    if (wanted.allowExisting() && exists(view)) {
      return List.of();
    }
    Map<String, String> properties = new LinkedHashMap<>();
    properties.put("owner", session.sparkContext().sparkUser());
    properties.putAll(JavaConverters.mapAsJavaMap(wanted.properties()));
    if (wanted.comment().isDefined()) {
      properties.put("comment", wanted.comment().get());
    }
    ViewDescription definition =
        definition(
            session,
            view,
            wanted.originalText().get(),
            wanted.query(),
            JavaConverters.seqAsJavaList(wanted.userSpecifiedColumns()),
            properties);
    if (wanted.replace()) {
      view.ask(c -> new ReplaceView(c, view.name(), definition, true), ViewDescription.class);
    } else {
      view.ask(
          c -> new org.icecomb.spark.planner.Protocol.CreateView(c, view.name(), definition),
          ViewDescription.class);
    }
    return List.of();
  }

  private static boolean exists(ViewName view) {
    return view.ask(c -> new ViewExists(c, view.name()), Exists.class).exists();
  }

  static List<Row> replaceQuery(SparkSession session, ViewName view, AlterViewAs wanted) {
    Map<String, String> properties = loaded(view).properties();
    ViewDescription definition =
        definition(
            session, view, wanted.originalText(), wanted.query(), List.of(), properties);
    view.ask(c -> new ReplaceView(c, view.name(), definition, false), ViewDescription.class);
    return List.of();
  }

  private static ViewDescription definition(
      SparkSession session,
      ViewName view,
      String text,
      LogicalPlan query,
      List<Tuple2<String, Option<String>>> columns,
      Map<String, String> properties) {
    ViewQuery.checkFunctions(session, view.parts(), query);
    QueryExecution execution =
        session.sessionState().executePlan(query, CommandExecutionMode.SKIP());
    execution.assertAnalyzed();
    ViewQuery.check(view.parts(), execution.analyzed());
    StructType schema = execution.analyzed().schema();
    var catalogs = session.sessionState().catalogManager();
    Map<String, String> settings = new HashMap<>();
    for (String setting : SETTINGS) {
      settings.put(setting, SQLConf.get().getConfString(setting));
    }
    return new ViewDescription(
        text,
        Schemas.toJson(Schemas.visible(ViewQuery.columns(view, schema, columns))),
        List.of(schema.fieldNames()),
        catalogs.currentCatalog().name(),
        List.of(catalogs.currentNamespace()),
        settings,
        null,
        properties);
  }

  static List<Row> set(ViewName view, Map<String, String> properties) {
    view.ask(
        c -> new AlterView(c, view.name(), properties, List.of()), ViewDescription.class);
    return List.of();
  }

  static List<Row> unset(ViewName view, List<String> keys, boolean ifExists) {
    if (!ifExists) {
      Map<String, String> there = loaded(view).properties();
      for (String key : keys) {
        if (!there.containsKey(key)) {
          throw SparkErrors.unsupported(
              "Cannot remove property that is not set: '" + key + "'",
              "SHOW TBLPROPERTIES " + view + " lists them; or use UNSET TBLPROPERTIES IF EXISTS.");
        }
      }
    }
    view.ask(c -> new AlterView(c, view.name(), Map.of(), keys), ViewDescription.class);
    return List.of();
  }

  static List<Row> rename(ViewName view, ViewName target) {
    if (target == null || target.catalog() != view.catalog()) {
      throw SparkErrors.unsupported(
          "Cannot move view between catalogs: " + view + " is in " + view.catalog().name(),
          "CREATE VIEW there, with the query that SHOW CREATE TABLE shows.");
    }
    loaded(view);
    target.ask(c -> new RenameView(c, view.name(), target.name()), Done.class);
    return List.of();
  }

  static List<Row> drop(ViewName view, boolean ifExists) {
    boolean dropped =
        view.ask(c -> new DropView(c, view.name()), Dropped.class).dropped();
    if (!dropped && !ifExists) {
      throw missing(view);
    }
    return List.of();
  }

  static ViewDescription loaded(ViewName view) {
    ViewDescription found = view.load();
    if (found == null) {
      throw missing(view);
    }
    return found;
  }

  private static RuntimeException missing(ViewName view) {
    return SparkErrors.unchecked(new NoSuchViewException(view.identifier()));
  }
}
