package org.icecomb.spark.statement;

import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
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
 * Refuses CREATE TABLE … LIKE an Iceberg table of the session catalog, where Spark (up to 4.1) would
 * copy the entry without asking it: nobody could read or write the copy.
 */
public final class LikeCheck extends AbstractFunction1<LogicalPlan, BoxedUnit> {

  private final SparkSession session;

  public LikeCheck(SparkSession session) {
    this.session = session;
  }

  @Override
  public BoxedUnit apply(LogicalPlan plan) {
    if (plan instanceof CreateTableLikeCommand like && isOurs(like.sourceTable())) {
      throw SparkErrors.unsupported(
          "CREATE TABLE … LIKE " + like.sourceTable().unquotedString() + ": it is an Iceberg table, "
              + "whose entry alone is no table",
          "CREATE TABLE … USING iceberg AS SELECT * FROM " + like.sourceTable().unquotedString()
              + " LIMIT 0");
    }
    return BoxedUnit.UNIT;
  }

  private boolean isOurs(TableIdentifier source) {
    CatalogPlugin catalog = session.sessionState().catalogManager().catalog("spark_catalog");
    if (!(catalog instanceof IcecombSessionCatalog own)
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
