package org.icecomb.spark.read;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.planner.Protocol.DeleteFile;

/**
 * Delete files that apply to a data file and compare the same columns.
 *
 * @param columns the table's columns that contain the compared fields, with ids
 * @param fieldIds the ids of the compared fields
 */
record EqualityDeletes(StructType columns, List<Integer> fieldIds, List<DeleteFile> files)
    implements Serializable {}
