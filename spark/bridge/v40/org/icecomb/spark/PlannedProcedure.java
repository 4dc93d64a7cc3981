package org.icecomb.spark;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.ProcedureParameter;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Values;
import org.icecomb.spark.planner.Json;
import org.icecomb.spark.planner.Protocol.ProcedureArgument;
import org.icecomb.spark.planner.Protocol.ProcedureDescription;
import org.icecomb.spark.planner.Protocol.TableName;
import org.icecomb.spark.statement.PlannedCalls;

/**
 * A procedure of the planner: Spark orders its arguments, the planner does the rest.
 *
 * <p>The bound procedure is another object: Spark counts the arguments of anything callable, even
 * before it has resolved them and filled in missing ones.
 */
final class PlannedProcedure implements UnboundProcedure {

  private final PlannerSession session;
  private final TableName procedure;
  private final ProcedureDescription description;
  private final ProcedureParameter[] parameters;

  PlannedProcedure(PlannerSession session, TableName procedure, ProcedureDescription description) {
    this.session = session;
    this.procedure = procedure;
    this.description = description;
    this.parameters =
        description.parameters().stream()
            .map(PlannedProcedure::parameter)
            .toArray(ProcedureParameter[]::new);
  }

  private static ProcedureParameter parameter(
      org.icecomb.spark.planner.Protocol.ProcedureParameter described) {
    ProcedureParameter.Builder builder =
        ProcedureParameter.in(described.name(), DataType.fromJson(Json.text(described.type())));
    return described.fallback() == null
        ? builder.build()
        : builder.defaultValue(described.fallback()).build();
  }

  @Override
  public String name() {
    return description.name();
  }

  @Override
  public String description() {
    return description.description();
  }

  @Override
  public BoundProcedure bind(StructType inputs) {
    return new Bound();
  }

  private final class Bound implements BoundProcedure {

    @Override
    public String name() {
      return PlannedProcedure.this.name();
    }

    @Override
    public String description() {
      return PlannedProcedure.this.description();
    }

    @Override
    public ProcedureParameter[] parameters() {
      return parameters;
    }

    @Override
    public boolean isDeterministic() {
      return false;
    }

    @Override
    public Iterator<Scan> call(InternalRow input) {
      List<ProcedureArgument> arguments = new ArrayList<>();
      for (int i = 0; i < parameters.length; i++) {
        DataType type = parameters[i].dataType();
        JsonNode value = Values.toJson(input.isNullAt(i) ? null : input.get(i, type), type);
        arguments.add(new ProcedureArgument(parameters[i].name(), value));
      }
      Scan scan = PlannedCalls.call(session, procedure, description, arguments);
      return List.of(scan).iterator();
    }
  }
}
