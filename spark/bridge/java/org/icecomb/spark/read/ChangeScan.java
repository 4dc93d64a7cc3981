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
      // A scan that reads it returns deleted rows, which would be changed. Where a condition names
      // a metadata column, Spark asks for all of them, and would write them as rows' own.
      throw namesMetadata(table.name());
    }
  }

  /** The refusal of a statement whose condition names metadata columns. */
  public static RuntimeException namesMetadata(String table) {
    return new UnsupportedOperationException(
        "A statement that moves or changes rows of " + table
            + " cannot name _deleted, and before Spark 4.0 cannot name metadata columns such as"
            + " _row_id or _pos\n"
            + "  hint: Find the rows by a column of the table, WHERE id IN (SELECT id FROM "
            + table + " WHERE _row_id = 5); a DELETE that is merge-on-read may name them");
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
