package org.icecomb.spark.statement;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.ResolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.ResolvedTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.icecomb.spark.IcecombSessionCatalog;
import org.icecomb.spark.IcecombTable;
import org.icecomb.spark.SparkErrors;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Refuses CREATE TABLE … LIKE in the session catalog where the old table is an Iceberg table, or the new
 * one would be: Spark (up to 4.1) copies the entry without asking the catalog, and nobody could read or
 * write such a copy.
 */
public final class LikeCheck extends AbstractFunction1<LogicalPlan, BoxedUnit> {

  private final SparkSession session;

  public LikeCheck(SparkSession session) {
    this.session = session;
  }

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    if (plan instanceof CreateTableLikeCommand like) {
      String source = like.sourceTable().unquotedString();
      if (isOurs(like.sourceTable())) {
        throw refused(source, "it is an Iceberg table, whose entry alone is no table");
      }
      if (like.provider().isDefined()
          && IcecombSessionCatalog.makesOurs(like.provider().get())
          && sessionCatalog() != null) {
        throw refused(source, "an Iceberg table is more than an entry like that one");
      }
    }
    if (plan.getClass().getSimpleName().equals("CreateTableLike")
        && plan.children().head() instanceof ResolvedIdentifier target
        && target.catalog() instanceof StatementCatalog
        && plan.children().last() instanceof ResolvedTable source
        && source.table() instanceof IcecombTable) {
      throw refused(
          source.catalog().name() + "." + source.identifier(),
          "it is an Iceberg table, whose entry alone is no table");
    }
    return BoxedUnit.UNIT;
  }

  private static RuntimeException refused(String source, String reason) {
    return SparkErrors.unsupported(
        "CREATE TABLE … LIKE " + source + ": " + reason,
        "CREATE TABLE … USING iceberg AS SELECT * FROM " + source + " LIMIT 0");
  }

  /** Null where Spark's own catalog is not ours. */
  private IcecombSessionCatalog sessionCatalog() {
    CatalogPlugin catalog = session.sessionState().catalogManager().catalog("spark_catalog");
    return catalog instanceof IcecombSessionCatalog ours ? ours : null;
  }

  private boolean isOurs(TableIdentifier source) {
    IcecombSessionCatalog own = sessionCatalog();
    if (own == null
        || session.sessionState().catalog().isTempView(source)) {
      return false;
    }
    String database =
        source.database().isDefined()
            ? source.database().get()
            : session.sessionState().catalog().getCurrentDatabase();
    try {
      return own.loadTable(Identifier.of(new String[] {database}, source.table()))
          instanceof IcecombTable;
    } catch (NoSuchTableException e) {
      return false;
    }
  }
}
