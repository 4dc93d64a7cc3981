package org.icecomb.spark.read;

import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.NullOrdering;
import org.apache.spark.sql.connector.expressions.SortDirection;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.AskedTopRows;

/**
 * The rows needed by a query that sorts them and takes the first.
 *
 * @param column the first key of the order
 */
record FirstRows(String column, AskedTopRows rows) {

  /**
   * @param schema the schema of the table
   * @return null if the first key is not a column of the table
   */
  static FirstRows of(SortOrder[] orders, int count, StructType schema) {
    if (orders.length == 0
        || !(orders[0].expression() instanceof NamedReference reference)
        || reference.fieldNames().length != 1) {
      return null;
    }
    String column = reference.fieldNames()[0];
    if (schema.getFieldIndex(column).isEmpty()) {
      return null;
    }
    boolean descending = orders[0].direction() == SortDirection.DESCENDING;
    boolean nullsFirst = orders[0].nullOrdering() == NullOrdering.NULLS_FIRST;
    int id = Schemas.id(schema.apply(column));
    return new FirstRows(column, new AskedTopRows(id, descending, nullsFirst, count));
  }

  @Override
  public String toString() {
    return rows.count()
        + " by "
        + column
        + (rows.descending() ? " DESC" : " ASC")
        + (rows.nullsFirst() ? " NULLS FIRST" : " NULLS LAST");
  }
}
