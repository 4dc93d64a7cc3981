package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.PlannerSession;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.convert.Schemas;

/** Collects what a query needs of a table: its columns, its nested fields and its filters. */
public class IcecombScanBuilder
    implements SupportsPushDownRequiredColumns, SupportsPushDownV2Filters {

  private final PlannerSession session;
  private final String tableName;
  private final JsonNode reference;
  private final StructType schemaWithIds;
  private final CaseInsensitiveStringMap options;
  private final List<Condition> conditions = new ArrayList<>();
  private Predicate[] pushed = new Predicate[0];
  private StructType required;

  public IcecombScanBuilder(
      PlannerSession session,
      String tableName,
      JsonNode reference,
      StructType schemaWithIds,
      CaseInsensitiveStringMap options) {
    this.session = session;
    this.tableName = tableName;
    this.reference = reference;
    this.schemaWithIds = schemaWithIds;
    this.options = options;
    this.required = Schemas.visible(schemaWithIds);
  }

  @Override
  public void pruneColumns(StructType requiredSchema) {
    required = requiredSchema;
  }

  /** Takes what it understands for leaving out data, and gives all back to be evaluated on rows. */
  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    List<Predicate> understood = new ArrayList<>();
    for (Predicate predicate : predicates) {
      Condition condition = Condition.of(predicate, schemaWithIds);
      if (condition != null) {
        conditions.add(condition);
        understood.add(predicate);
      }
    }
    pushed = understood.toArray(new Predicate[0]);
    return predicates;
  }

  @Override
  public Predicate[] pushedPredicates() {
    return pushed;
  }

  @Override
  public Scan build() {
    return new IcecombScan(session, tableName, reference, schemaWithIds, required, conditions, options);
  }

  /** The scan for a statement that writes the files it reads anew: it reads all their rows. */
  final RewriteScan buildRewrite() {
    return new RewriteScan(session, tableName, reference, schemaWithIds, required, conditions, options);
  }
}
