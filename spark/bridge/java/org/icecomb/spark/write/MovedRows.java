package org.icecomb.spark.write;

import java.io.IOException;
import java.io.Serializable;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.JoinedRow;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.planner.Protocol.WriteInstructions;
import org.icecomb.spark.read.MetadataColumns;

/**
 * Rows that keep their lineage in another file, whose last columns it is (specification, "Row
 * Lineage").
 *
 * @param rowId the ordinal of the row's id in its metadata columns
 * @param lastUpdated the ordinal of the sequence number of its last change in them
 */
record MovedRows(int rowId, int lastUpdated) implements Serializable {

  /** A writer of rows of other files, besides new ones. */
  interface Writer {

    /**
     * Writes a row of another file.
     *
     * @param metadata its metadata columns
     */
    void write(InternalRow metadata, InternalRow row) throws IOException;
  }

  /**
   * @param info describes the rows and their metadata columns
   * @return null if the planner asks for no lineage, or the rows themselves carry it
   */
  static MovedRows of(WriteInstructions instructions, LogicalWriteInfo info) {
    if (!instructions.lineage() || info.schema().getFieldIndex(MetadataColumns.ROW_ID).isDefined()) {
      return null;
    }
    StructType given = info.metadataSchema().orElseThrow();
    return new MovedRows(
        given.fieldIndex(MetadataColumns.ROW_ID), given.fieldIndex(MetadataColumns.LAST_UPDATED));
  }

  /** A view of one row after the other with its lineage. */
  static final class View {

    private final MovedRows columns;
    private final GenericInternalRow lineage = new GenericInternalRow(2);
    private final JoinedRow joined = new JoinedRow();

    View(MovedRows columns) {
      this.columns = columns;
    }

    /** A row with its lineage; without, if it is a new one, whose metadata is null. */
    InternalRow of(InternalRow metadata, InternalRow row) {
      put(0, metadata, columns.rowId());
      put(1, metadata, columns.lastUpdated());
      return joined.apply(row, lineage);
    }

    private void put(int place, InternalRow metadata, int ordinal) {
      if (metadata == null || metadata.isNullAt(ordinal)) {
        lineage.setNullAt(place);
      } else {
        lineage.setLong(place, metadata.getLong(ordinal));
      }
    }
  }
}
