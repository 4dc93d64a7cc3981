package org.icecomb.spark.read;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.expressions.XXH64;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Json;

/** Columns that every table has without storing them. */
public final class MetadataColumns {

  public static final String FILE = "_file";

  /** Identifies the file when changed rows are shuffled: paths would be most of the bytes. */
  public static final String FILE_ID = "_icecomb_file";

  public static final String POSITION = "_pos";
  public static final String SPEC_ID = "_spec_id";

  static final String PARTITION = "_partition";
  static final String DELETED = "_deleted";

  public static final String ROW_ID = "_row_id";
  public static final String LAST_UPDATED = "_last_updated_sequence_number";

  /** The ids that Iceberg's specification reserves for {@code _partition} and row lineage. */
  static final int PARTITION_ID = 2147483642;

  static final int ROW_ID_ID = 2147483540;
  static final int LAST_UPDATED_ID = 2147483539;

  private static final long SEED = 42;

  private static final List<MetadataColumn> SIMPLE =
      List.of(
          new Hidden(FILE, DataTypes.StringType, false, "Path of the data file that holds the row"),
          new Hidden(
              FILE_ID, DataTypes.LongType, false, "Hash of the path of the data file of the row"),
          new Hidden(
              POSITION, DataTypes.LongType, false, "Position of the row in its data file, from 0"),
          new Hidden(
              SPEC_ID,
              DataTypes.IntegerType,
              false,
              "Id of the partition spec of the row's data file"),
          new Hidden(
              DELETED,
              DataTypes.BooleanType,
              false,
              "Whether the row is deleted; a query that selects this gets deleted rows, too"));

  private static final List<MetadataColumn> LINEAGE =
      List.of(
          new Lineage(ROW_ID, "Id of the row, which it keeps when it is changed", true),
          new Lineage(LAST_UPDATED, "Sequence number of the row's last change", false));

  private MetadataColumns() {}

  /**
   * The metadata columns of a table.
   *
   * @param partition the type of {@code _partition}, or null if the table has no such column
   * @param lineage whether rows have ids
   */
  public static MetadataColumn[] of(StructType partition, boolean lineage) {
    List<MetadataColumn> columns = new ArrayList<>(SIMPLE);
    if (lineage) {
      columns.addAll(LINEAGE);
    }
    if (partition != null) {
      columns.add(
          new Hidden(
              PARTITION,
              Schemas.visible(partition),
              true,
              "Partition of the row's data file, in the fields of all specs of the table"));
    }
    return columns.toArray(new MetadataColumn[0]);
  }

  /**
   * Whether a column is one of the table's own: where rows are moved, its schema has those of row
   * lineage, too.
   *
   * @param schema the table's schema with ids
   */
  static boolean isStored(String name, StructType schema) {
    if (schema.getFieldIndex(name).isEmpty()) {
      return false;
    }
    int id = Schemas.id(schema.apply(name));
    return id != ROW_ID_ID && id != LAST_UPDATED_ID;
  }

  /** Whether a name, in any case of letters, is that of a metadata column. */
  public static boolean isNamed(String name) {
    return PARTITION.equalsIgnoreCase(name)
        || Stream.concat(SIMPLE.stream(), LINEAGE.stream())
            .anyMatch(column -> column.name().equalsIgnoreCase(name));
  }

  /** The columns of a table, and those of row lineage behind them. */
  public static StructType withLineage(StructType own) {
    return own.add(ROW_ID, DataTypes.LongType).add(LAST_UPDATED, DataTypes.LongType);
  }

  /** Whether a column has the name of one of row lineage. */
  public static boolean isLineage(String name) {
    return name.equalsIgnoreCase(ROW_ID) || name.equalsIgnoreCase(LAST_UPDATED);
  }

  /** The value of {@link #FILE_ID} in a file: {@code xxhash64(_file)}, the same in every scan. */
  static long fileId(String path) {
    byte[] text = path.getBytes(StandardCharsets.UTF_8);
    return XXH64.hashUnsafeBytes(text, Platform.BYTE_ARRAY_OFFSET, text.length, SEED);
  }

  /**
   * A column of row lineage.
   *
   * @param kept whether Spark keeps the value when it changes the row
   */
  private record Lineage(String name, String comment, boolean kept) implements MetadataColumn {

    @Override
    public DataType dataType() {
      return DataTypes.LongType;
    }

    /** Used by Spark 4.0 and later. */
    public String metadataInJSON() {
      return Json.text(
          Json.object()
              .put("__preserve_on_delete", false)
              .put("__preserve_on_update", kept)
              .put("__preserve_on_reinsert", kept));
    }
  }

  private record Hidden(String name, DataType dataType, boolean isNullable, String comment)
      implements MetadataColumn {}
}
