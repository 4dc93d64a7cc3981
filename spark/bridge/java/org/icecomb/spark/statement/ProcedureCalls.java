package org.icecomb.spark.statement;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.CatalystTypeConverters;
import org.apache.spark.sql.catalyst.analysis.TypeCoercion;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.EvalMode;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.CommandExecutionMode;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Values;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.ProcedureArgument;
import org.icecomb.spark.planner.Protocol.ProcedureDescription;
import org.icecomb.spark.planner.Protocol.ProcedureParameter;
import org.icecomb.spark.planner.Protocol.TableName;
import org.icecomb.spark.read.GivenRows;
import scala.Function1;
import scala.Option;
import scala.collection.JavaConverters;

/** A rule that converts a {@link ProcedureCall} with resolved arguments to a command. */
public final class ProcedureCalls extends Rule<LogicalPlan> {

  private final SparkSession session;

  public ProcedureCalls(SparkSession session) {
    this.session = session;
  }

  @Override
  public LogicalPlan apply(LogicalPlan plan) {
    return plan instanceof ProcedureCall call && call.arguments() instanceof Project given
            && given.resolved()
        ? command(call, given)
        : plan;
  }

  private LogicalPlan command(ProcedureCall call, Project given) {
    PlannerSession planner = StatementCatalog.find(session, call.procedure()).session();
    TableName procedure = name(call.procedure());
    ProcedureDescription description = PlannedCalls.description(planner, procedure);
    List<NamedExpression> columns = new ArrayList<>();
    List<NamedExpression> values = JavaConverters.seqAsJavaList(given.projectList());
    for (int i = 0; i < values.size(); i++) {
      ProcedureParameter parameter = parameter(description, call.names().get(i), i);
      Expression value = ((Alias) values.get(i)).child();
      columns.add(ProcedureCall.column(parameter == null ? value : cast(value, parameter)));
    }
    Project arguments = new Project(CommandPlan.list(columns), new OneRowRelation());
    StructType schema = Schemas.parse(description.schema());
    return new StatementCommand(
        "Call",
        String.join(".", call.procedure()) + values,
        schema,
        running ->
            rows(
                PlannedCalls.call(
                    planner, procedure, description, values(running, call.names(), arguments)),
                schema));
  }

  private TableName name(List<String> parts) {
    boolean qualified = StatementCatalog.isQualified(session, parts);
    return new TableName(parts.subList(qualified ? 1 : 0, parts.size() - 1), parts.get(parts.size() - 1));
  }

  /** The parameter, or null if there is none, which the planner reports. */
  private static ProcedureParameter parameter(
      ProcedureDescription description, String name, int position) {
    List<ProcedureParameter> parameters = description.parameters();
    if (name == null) {
      return position < parameters.size() ? parameters.get(position) : null;
    }
    return parameters.stream()
        .filter(each -> each.name().equalsIgnoreCase(name))
        .findFirst()
        .orElse(null);
  }

  /** Casts a value; failure is an error whatever the session's settings, as null is the default. */
  private static Expression cast(Expression value, ProcedureParameter parameter) {
    DataType type = DataType.fromJson(Json.text(parameter.type()));
    Option<Expression> implicit = TypeCoercion.implicitCast(value, type);
    if (implicit.isEmpty()) {
      throw SparkErrors.unsupported(
          "The argument "
              + parameter.name()
              + " is "
              + type.catalogString()
              + ", not "
              + value.dataType().catalogString(),
          "CAST it, or write it as a literal of this type.");
    }
    return value.dataType().equals(type)
        ? value
        : new Cast(
            value, type, Option.apply(SQLConf.get().sessionLocalTimeZone()), EvalMode.ANSI());
  }

  private static List<ProcedureArgument> values(
      SparkSession session, List<String> names, Project arguments) {
    LogicalPlan folded =
        session
            .sessionState()
            .executePlan(arguments, CommandExecutionMode.SKIP())
            .optimizedPlan();
    List<ProcedureArgument> found = new ArrayList<>();
    List<NamedExpression> columns =
        JavaConverters.seqAsJavaList(((Project) folded).projectList());
    for (int i = 0; i < columns.size(); i++) {
      Expression value = ((Alias) columns.get(i)).child();
      if (!value.foldable()) {
        throw SparkErrors.unsupported(
            "The argument " + value.sql() + " is not a constant", "Give the procedure its value.");
      }
      JsonNode json = Values.toJson(value.eval(null), value.dataType());
      found.add(new ProcedureArgument(names.get(i), json));
    }
    return found;
  }

  private static List<Row> rows(GivenRows given, StructType schema) {
    Function1<Object, Object> converter = CatalystTypeConverters.createToScalaConverter(schema);
    List<Row> rows = new ArrayList<>();
    for (Object row : given.rows()) {
      rows.add((Row) converter.apply(row));
    }
    return rows;
  }
}
