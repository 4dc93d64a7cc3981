package org.icecomb.spark.rows;

import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.PushedConditions;
import org.icecomb.spark.convert.Schemas;

/** The builder of a scan with a query's columns, nested fields, filters and limit. */
final class RowsScanBuilder
    implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters, SupportsPushDownLimit {

  private final TableHandle table;
  private final CaseInsensitiveStringMap options;
  private PushedConditions pushed = PushedConditions.NONE;
  private StructType required;
  private Integer limit;

  RowsScanBuilder(TableHandle table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
    this.required = table.schema();
  }

  @Override
  public void pruneColumns(StructType requiredSchema) {
    required = Schemas.part(requiredSchema, table.schema());
  }

  /** Takes convertible filters for leaving out rows, and returns all to be evaluated again. */
  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    pushed = PushedConditions.of(predicates, table.schema());
    return predicates;
  }

  @Override
  public Predicate[] pushedPredicates() {
    return pushed.predicates();
  }

  @Override
  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  @Override
  public Scan build() {
    return new RowsScan(table, required, pushed.conditions(), limit, options);
  }
}
