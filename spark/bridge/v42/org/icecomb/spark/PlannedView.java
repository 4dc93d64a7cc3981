package org.icecomb.spark;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.connector.catalog.View;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.ViewDescription;

/** Conversion of views between Spark and the planner. */
final class PlannedView {

  private PlannedView() {}

  /** Spark's view of the planner's description. */
  static View of(ViewDescription description) {
    return new View.Builder()
        .withSchema(Schemas.visible(Schemas.parse(description.schema())))
        .withProperties(description.properties())
        .withQueryText(description.query())
        .withCurrentCatalog(description.currentCatalog())
        .withCurrentNamespace(description.currentNamespace().toArray(new String[0]))
        .withSqlConfigs(description.settings())
        .withSchemaMode(description.schemaMode())
        .withQueryColumnNames(description.queryColumns().toArray(new String[0]))
        .build();
  }

  /** The planner's description of a view that Spark creates. */
  static ViewDescription described(View wanted) {
    return new ViewDescription(
        wanted.queryText(),
        Schemas.toJson(Schemas.visible(wanted.schema())),
        List.of(wanted.queryColumnNames()),
        wanted.currentCatalog(),
        Arrays.asList(wanted.currentNamespace()),
        wanted.sqlConfigs(),
        wanted.schemaMode(),
        wanted.properties());
  }
}
