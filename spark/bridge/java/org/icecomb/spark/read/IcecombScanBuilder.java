package org.icecomb.spark.read;

import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.PushedConditions;
import org.icecomb.spark.convert.Schemas;

/** Collects what a query needs of a table: its columns, its nested fields and its filters. */
public class IcecombScanBuilder
    implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {

  private final TableHandle table;
  private final CaseInsensitiveStringMap options;
  private PushedConditions pushed = PushedConditions.NONE;
  private StructType required;

  public IcecombScanBuilder(TableHandle table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
    this.required = Schemas.visible(table.schema());
  }

  @Override
  public void pruneColumns(StructType requiredSchema) {
    required = requiredSchema;
  }

  /** Takes what it understands for leaving out data, and gives all back to be evaluated on rows. */
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
  public Scan build() {
    return new IcecombScan(table, required, pushed.conditions(), options);
  }

  /** The scan for a statement that writes the files it reads anew: it reads all their rows. */
  final RewriteScan buildRewrite() {
    return new RewriteScan(table, required, pushed.conditions(), options);
  }
}
