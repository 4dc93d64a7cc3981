package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.node.ArrayNode;
import java.util.List;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.convert.Condition;

/** The scan by UPDATE, DELETE or MERGE of the table that it changes. */
public abstract class ChangeScan extends IcecombScan {

  ChangeScan(
      TableHandle table,
      StructType required,
      List<Condition> conditions,
      CaseInsensitiveStringMap options) {
    super(table, required, conditions, null, options, null, null);
    if (readsMetadata(MetadataColumns.DELETED)) {
      // A scan that reads it returns deleted rows, which would be changed.
      throw new UnsupportedOperationException(
          "A statement that changes rows of " + table.name() + " cannot ask for _deleted\n"
              + "  hint: select the rows by other columns: those that are deleted are not changed");
    }
  }

  /** The conditions by which the planner selected the files. */
  public final ArrayNode fileConditions() {
    return conditionsJson();
  }

  /** Equal only to itself, because its statement changes the rows that it reads. */
  @Override
  public final boolean equals(Object other) {
    return this == other;
  }

  @Override
  public final int hashCode() {
    return System.identityHashCode(this);
  }
}
