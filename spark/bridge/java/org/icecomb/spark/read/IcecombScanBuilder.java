package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.expressions.aggregate.Aggregation;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownAggregates;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownTopN;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Condition;
import org.icecomb.spark.convert.PushedConditions;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.AggregateFiles;
import org.icecomb.spark.planner.Protocol.Aggregated;
import org.icecomb.spark.planner.Protocol.DecideFilters;
import org.icecomb.spark.planner.Protocol.DecidedFilters;
import org.icecomb.spark.planner.Protocol.Selection;

/** The builder of a scan with a query's columns, nested fields, filters and limit. */
public class IcecombScanBuilder
    implements SupportsPushDownRequiredColumns,
        SupportsPushDownV2Filters,
        SupportsPushDownAggregates,
        SupportsPushDownLimit,
        SupportsPushDownTopN {

  private final TableHandle table;
  private final CaseInsensitiveStringMap options;
  private PushedConditions pushed = PushedConditions.NONE;
  private Set<String> files;
  private StructType required;
  private Integer limit;
  private FirstRows first;
  private Scan answered;

  public IcecombScanBuilder(TableHandle table, CaseInsensitiveStringMap options) {
    this.table = table;
    this.options = options;
    this.required = Schemas.visible(table.schema());
  }

  @Override
  public void pruneColumns(StructType requiredSchema) {
    required = requiredSchema;
  }

  /** Takes convertible filters, and returns those that do not select whole partitions. */
  @Override
  public Predicate[] pushPredicates(Predicate[] predicates) {
    pushed = PushedConditions.of(predicates, table.schema());
    files = NamedFiles.of(predicates, table.schema());
    return pushed.onRows(
        conditions ->
            table
                .ask(new DecideFilters(selection(conditions)), DecidedFilters.class)
                .whole());
  }

  @Override
  public Predicate[] pushedPredicates() {
    return pushed.predicates();
  }

  /** A partial push-down: Spark merges the groups, which may be split in an answer. */
  @Override
  public boolean pushAggregation(Aggregation aggregation) {
    AggregateQuestion question = AggregateQuestion.of(aggregation, table.schema());
    if (question == null) {
      return false;
    }
    AggregateFiles request =
        new AggregateFiles(
            selection(pushed.conditions()), question.groupBy(), question.functions());
    List<JsonNode> rows = table.ask(request, Aggregated.class).rows();
    if (rows == null) {
      return false;
    }
    answered = new GivenRows(question.schema(), rows);
    return true;
  }

  /** Takes the limit for reading fewer files; Spark truncates their rows. */
  @Override
  public boolean pushLimit(int rows) {
    limit = rows;
    return true;
  }

  /** Takes the limit for reading fewer files; Spark sorts and truncates their rows. */
  @Override
  public boolean pushTopN(SortOrder[] orders, int rows) {
    first = FirstRows.of(orders, rows, table.schema());
    return first != null;
  }

  @Override
  public boolean isPartiallyPushed() {
    return true;
  }

  @Override
  public Scan build() {
    return answered == null
        ? new IcecombScan(table, required, pushed.conditions(), files, options, limit, first)
        : answered;
  }

  /** The conditions pushed so far. */
  public final ArrayNode conditions() {
    return Condition.toJson(pushed.conditions());
  }

  /** The scan for a statement that rewrites the files it reads: it reads all their rows. */
  public final RewriteScan buildRewrite() {
    return new RewriteScan(table, required, pushed.conditions(), options);
  }

  /** The scan for a statement that deletes rows by position. */
  public final DeltaScan buildDelta() {
    return new DeltaScan(table, required, pushed.conditions(), options);
  }

  private Selection selection(List<Condition> conditions) {
    return table.selection(Condition.toJson(conditions), options);
  }
}
