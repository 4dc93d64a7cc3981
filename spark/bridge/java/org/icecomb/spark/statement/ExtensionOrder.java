package org.icecomb.spark.statement;

import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.icecomb.spark.SparkErrors;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * A check with a hint if Iceberg's own extensions come after icecomb's in {@code
 * spark.sql.extensions}: their parser then comes first, takes the statements on icecomb's tables,
 * too, and has no plan for them.
 */
public final class ExtensionOrder extends AbstractFunction1<LogicalPlan, BoxedUnit> {

  private static final String PLANS = "org.apache.spark.sql.catalyst.plans.logical.";
  private static final Set<String> STATEMENTS =
      Set.of(
          PLANS + "AddPartitionField",
          PLANS + "DropPartitionField",
          PLANS + "ReplacePartitionField",
          PLANS + "SetWriteDistributionAndOrdering",
          PLANS + "SetIdentifierFields",
          PLANS + "DropIdentifierFields",
          PLANS + "CreateOrReplaceBranch",
          PLANS + "CreateOrReplaceTag",
          PLANS + "DropBranch",
          PLANS + "DropTag");

  private final SparkSession session;

  public ExtensionOrder(SparkSession session) {
    this.session = session;
  }

  @Override
  @SuppressWarnings("unchecked")
  public BoxedUnit apply(LogicalPlan plan) {
    if (STATEMENTS.contains(plan.getClass().getName())
        && plan.productElement(0) instanceof scala.collection.Seq<?> table
        && StatementCatalog.serves(session, (scala.collection.Seq<String>) table)) {
      throw SparkErrors.unsupported(
          "Iceberg's own SQL extensions took this statement about a table of icecomb's",
          "Name them first: spark.sql.extensions="
              + "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions,"
              + "org.icecomb.spark.IcecombSessionExtensions");
    }
    return BoxedUnit.UNIT;
  }
}
