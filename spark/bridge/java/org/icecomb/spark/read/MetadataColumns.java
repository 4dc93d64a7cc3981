package org.icecomb.spark.read;

import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;

/** Columns that every table has without storing them. */
public final class MetadataColumns {

  public static final String FILE = "_file";
  public static final String POSITION = "_pos";
  public static final String SPEC_ID = "_spec_id";

  public static final MetadataColumn[] ALL = {
    new Hidden(FILE, DataTypes.StringType, "Path of the data file that holds the row"),
    new Hidden(POSITION, DataTypes.LongType, "Position of the row in its data file, from 0"),
    new Hidden(SPEC_ID, DataTypes.IntegerType, "Id of the partition spec of the row's data file")
  };

  private MetadataColumns() {}

  static boolean contains(String name) {
    return name.equals(FILE) || name.equals(POSITION) || name.equals(SPEC_ID);
  }

  private record Hidden(String name, DataType dataType, String comment) implements MetadataColumn {

    @Override
    public boolean isNullable() {
      return false;
    }
  }
}
