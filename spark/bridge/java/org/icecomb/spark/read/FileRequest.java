package org.icecomb.spark.read;

import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Condition;

/**
 * What is to be read of one file.
 *
 * @param format {@code parquet}, {@code orc} or {@code avro}
 * @param columns the columns to read, with ids; their names matter to the conditions only
 * @param positions whether the positions of rows are wanted
 * @param deletes rows that may be left out, or null
 * @param conditions rows that do not meet them may be left out
 * @param mapping for a file without ids, or null
 */
record FileRequest(
    Configuration hadoop,
    ReadSettings settings,
    String format,
    Path path,
    long start,
    long length,
    StructType columns,
    boolean positions,
    PositionDeletes deletes,
    List<Condition> conditions,
    NameMapping mapping) {

  UnsupportedOperationException withoutIds() {
    return new UnsupportedOperationException(
        "it has no field ids and the table has no name mapping\n"
            + "  hint: set the table property schema.name-mapping.default");
  }
}
