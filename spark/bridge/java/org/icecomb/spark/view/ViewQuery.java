package org.icecomb.spark.view;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ScriptTransformation;
import org.apache.spark.sql.catalyst.plans.logical.View;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.SparkErrors;
import scala.Option;
import scala.Tuple2;
import scala.collection.JavaConverters;

/** Checks of a view's query, which other sessions must be able to run. */
final class ViewQuery {

  private ViewQuery() {}

  /** Refuses a query that reads the view itself, or a temporary view, or runs other code. */
  static void check(List<String> view, LogicalPlan analyzed) {
    checkCalls(view, analyzed);
    visit(
        analyzed,
        plan -> {
          if (plan instanceof View read) {
            if (read.isTempView()) {
              throw temporary(view, "view", read.desc().identifier().table());
            }
            if (parts(read.desc().identifier()).equals(view)) {
              throw SparkErrors.unsupported(
                  "[RECURSIVE_VIEW] Recursive view " + String.join(".", view) + ": it reads itself",
                  "Let its query read tables or other views.");
            }
          }
        });
  }

  /** Refuses a query that calls methods of Java (reflect and the like) or runs a script. */
  static void checkCalls(List<String> view, LogicalPlan analyzed) {
    visit(
        analyzed,
        plan -> {
          if (plan instanceof ScriptTransformation) {
            throw runsCode(view, "a script (TRANSFORM ... USING)");
          }
          JavaConverters.seqAsJavaList(plan.expressions())
              .forEach(each -> checkCalls(view, each));
        });
  }

  private static void checkCalls(List<String> view, Expression expression) {
    if (expression instanceof CallMethodViaReflection) {
      throw runsCode(view, "a method of Java (reflect, java_method, try_reflect)");
    }
    JavaConverters.seqAsJavaList(expression.children()).forEach(child -> checkCalls(view, child));
  }

  private static RuntimeException runsCode(List<String> view, String what) {
    return SparkErrors.unsupported(
        "The query of view "
            + String.join(".", view)
            + " runs "
            + what
            + ", which whoever writes to the view's folder could have put there",
        "Call it in the query that reads the view.");
  }

  static List<String> parts(TableIdentifier identifier) {
    List<String> parts = new ArrayList<>();
    for (Option<String> each : List.of(identifier.catalog(), identifier.database())) {
      if (each.isDefined()) {
        parts.add(each.get());
      }
    }
    parts.add(identifier.table());
    return parts;
  }

  /** Refuses a parsed query with functions that only this session has. */
  static void checkFunctions(SparkSession session, List<String> view, LogicalPlan parsed) {
    visit(
        parsed,
        plan ->
            JavaConverters.seqAsJavaList(plan.expressions())
                .forEach(each -> checkFunctions(session, view, each)));
  }

  private static void checkFunctions(
      SparkSession session, List<String> view, Expression expression) {
    if (expression instanceof UnresolvedFunction function && function.nameParts().size() == 1) {
      String name = function.nameParts().head();
      FunctionIdentifier identifier = new FunctionIdentifier(name, Option.empty(), Option.empty());
      if (session.sessionState().catalog().isTemporaryFunction(identifier)) {
        throw temporary(view, "function", name);
      }
    }
    if (expression instanceof SubqueryExpression subquery) {
      checkFunctions(session, view, subquery.plan());
    }
    JavaConverters.seqAsJavaList(expression.children())
        .forEach(child -> checkFunctions(session, view, child));
  }

  private static RuntimeException temporary(List<String> view, String kind, String name) {
    return SparkErrors.unsupported(
        "[INVALID_TEMP_OBJ_REFERENCE] Cannot create view "
            + String.join(".", view)
            + " that references temporary "
            + kind
            + ": "
            + name,
        "Make that persistent, or this temporary: CREATE TEMPORARY VIEW.");
  }

  static void visit(LogicalPlan plan, Consumer<LogicalPlan> visitor) {
    visitor.accept(plan);
    JavaConverters.seqAsJavaList(plan.children()).forEach(child -> visit(child, visitor));
    for (Object inner : JavaConverters.seqAsJavaList(plan.innerChildren())) {
      if (inner instanceof LogicalPlan below) {
        visit(below, visitor);
      }
    }
    for (Object subquery :
        JavaConverters.seqAsJavaList(((QueryPlan<LogicalPlan>) plan).subqueries())) {
      visit((LogicalPlan) subquery, visitor);
    }
  }

  /** The columns of a view: those of its query under the names and with the comments given. */
  static StructType columns(
      ViewName view, StructType query, List<Tuple2<String, Option<String>>> given) {
    if (!given.isEmpty() && given.size() != query.size()) {
      boolean few = given.size() > query.size();
      List<String> names = new ArrayList<>();
      given.forEach(each -> names.add(each._1()));
      throw SparkErrors.unsupported(
          "[CREATE_VIEW_COLUMN_ARITY_MISMATCH."
              + (few ? "NOT_ENOUGH" : "TOO_MANY")
              + "_DATA_COLUMNS] Cannot create view "
              + view.quoted()
              + ", the reason is "
              + (few ? "not enough" : "too many")
              + " data columns:\nView columns: `"
              + String.join("`, `", names)
              + "`.\nData columns: `"
              + String.join("`, `", query.fieldNames())
              + "`.",
          "Name as many columns as the query has.");
    }
    StructType found = new StructType();
    for (int i = 0; i < query.size(); i++) {
      StructField column = query.apply(i);
      if (given.isEmpty()) {
        found = found.add(column);
        continue;
      }
      StructField named =
          new StructField(
              given.get(i)._1(), column.dataType(), column.nullable(), Metadata.empty());
      Option<String> comment = given.get(i)._2();
      found = found.add(comment.isDefined() ? named.withComment(comment.get()) : named);
    }
    checkNames(found);
    return found;
  }

  private static void checkNames(StructType columns) {
    Set<String> names =
        SQLConf.get().caseSensitiveAnalysis()
            ? new TreeSet<>()
            : new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    for (String name : columns.fieldNames()) {
      if (!names.add(name)) {
        throw SparkErrors.unsupported(
            "[COLUMN_ALREADY_EXISTS] The column `" + name + "` already exists",
            "Give the view's columns different names.");
      }
    }
  }
}
