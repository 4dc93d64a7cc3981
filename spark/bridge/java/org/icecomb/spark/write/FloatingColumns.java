package org.icecomb.spark.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.BinaryNode;
import com.fasterxml.jackson.databind.node.NullNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;

/**
 * Metrics of floating-point columns that no format's statistics have: the number of NaN values, and
 * the bounds of the others (Iceberg's specification, nan_value_counts, lower_bounds).
 */
final class FloatingColumns {

  private static final int LOWER_BOUND = 4;
  private static final int UPPER_BOUND = 5;

  private final List<Column> columns = new ArrayList<>();

  /**
   * @param modes Iceberg's metrics mode by field id; columns without one are ignored, as are those
   *     inside lists and maps
   */
  FloatingColumns(StructType schema, Map<String, String> modes) {
    find(schema, modes, new int[0], new int[0]);
  }

  private void find(StructType struct, Map<String, String> modes, int[] places, int[] widths) {
    for (int i = 0; i < struct.size(); i++) {
      StructField field = struct.fields()[i];
      int[] place = with(places, i);
      if (field.dataType() instanceof StructType inside) {
        find(inside, modes, place, with(widths, inside.size()));
      } else if (field.dataType() instanceof DoubleType || field.dataType() instanceof FloatType) {
        String mode = modes.get(Integer.toString(Schemas.id(field)));
        if (mode != null) {
          columns.add(
              new Column(
                  Schemas.id(field),
                  place,
                  widths,
                  field.dataType() instanceof FloatType,
                  !mode.equals(ColumnMetrics.COUNTS)));
        }
      }
    }
  }

  private static int[] with(int[] numbers, int last) {
    int[] longer = Arrays.copyOf(numbers, numbers.length + 1);
    longer[numbers.length] = last;
    return longer;
  }

  void add(InternalRow row) {
    for (int i = 0; i < columns.size(); i++) {
      columns.get(i).add(row);
    }
  }

  /**
   * Adds the number of NaN values to the examined columns, and bounds to those that have any: the
   * format's own are of all values, or missing.
   *
   * @param metrics see {@link ColumnMetrics#toJson}
   */
  void complete(ArrayNode metrics) {
    Map<Integer, Column> byId = new HashMap<>();
    columns.forEach(column -> byId.put(column.id, column));
    for (JsonNode each : metrics) {
      ArrayNode said = (ArrayNode) each;
      Column column = byId.get(said.get(0).asInt());
      if (column == null) {
        continue;
      }
      if (column.nans > 0 && column.bounds) {
        said.set(LOWER_BOUND, column.bound(column.least));
        said.set(UPPER_BOUND, column.bound(column.greatest));
      }
      said.add(column.nans);
    }
  }

  /** One floating-point column. */
  private static final class Column {

    private final int id;
    private final int[] places;
    private final int[] widths;
    private final boolean single;
    private final boolean bounds;
    private long nans;
    private double least = Double.NaN;
    private double greatest = Double.NaN;

    Column(int id, int[] places, int[] widths, boolean single, boolean bounds) {
      this.id = id;
      this.places = places;
      this.widths = widths;
      this.single = single;
      this.bounds = bounds;
    }

    void add(InternalRow row) {
      InternalRow level = row;
      for (int i = 0; i < widths.length; i++) {
        if (level.isNullAt(places[i])) {
          return;
        }
        level = level.getStruct(places[i], widths[i]);
      }
      int place = places[widths.length];
      if (level.isNullAt(place)) {
        return;
      }
      double value = single ? level.getFloat(place) : level.getDouble(place);
      if (Double.isNaN(value)) {
        nans++;
        return;
      }
      // written so that the first value replaces NaN
      if (!(value >= least)) {
        least = value;
      }
      if (!(value <= greatest)) {
        greatest = value;
      }
    }

    JsonNode bound(double value) {
      if (Double.isNaN(value)) {
        return NullNode.getInstance();
      }
      ByteBuffer bytes = ByteBuffer.allocate(single ? 4 : 8).order(ByteOrder.LITTLE_ENDIAN);
      byte[] encoded =
          single ? bytes.putFloat((float) value).array() : bytes.putDouble(value).array();
      return BinaryNode.valueOf(encoded);
    }
  }
}
