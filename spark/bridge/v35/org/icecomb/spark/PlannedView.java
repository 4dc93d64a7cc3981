package org.icecomb.spark;

import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.View;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.ViewDescription;

/** A Spark view over the planner's description. */
final class PlannedView implements View {

  private final Identifier view;
  private final ViewDescription description;

  PlannedView(Identifier view, ViewDescription description) {
    this.view = view;
    this.description = description;
  }

  /** The planner's description of a view that Spark creates. */
  static ViewDescription described(
      String query,
      String currentCatalog,
      String[] currentNamespace,
      StructType schema,
      String[] queryColumnNames,
      Map<String, String> properties) {
    return new ViewDescription(
        query,
        Schemas.toJson(Schemas.visible(schema)),
        List.of(queryColumnNames),
        currentCatalog,
        List.of(currentNamespace),
        Map.of(),
        null,
        properties);
  }

  @Override
  public String name() {
    return String.join(".", view.namespace()) + "." + view.name();
  }

  @Override
  public String query() {
    return description.query();
  }

  @Override
  public String currentCatalog() {
    return description.currentCatalog();
  }

  @Override
  public String[] currentNamespace() {
    return description.currentNamespace().toArray(new String[0]);
  }

  @Override
  public StructType schema() {
    return Schemas.visible(Schemas.parse(description.schema()));
  }

  @Override
  public String[] queryColumnNames() {
    return description.queryColumns().toArray(new String[0]);
  }

  /** Empty: the schema has them. */
  @Override
  public String[] columnAliases() {
    return new String[0];
  }

  /** Empty: the schema has them. */
  @Override
  public String[] columnComments() {
    return new String[0];
  }

  @Override
  public Map<String, String> properties() {
    return description.properties();
  }
}
