package org.icecomb.spark.functions;

import java.io.Serializable;
import java.util.Arrays;
import org.apache.spark.sql.connector.catalog.functions.Reducer;
import org.apache.spark.sql.connector.catalog.functions.ReducibleFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.icecomb.spark.functions.BoundFunction.DaysOfTimestamp;
import org.icecomb.spark.functions.BoundFunction.HoursOfTimestamp;

/** Hours that can be reduced to days, but no other units of time, as in Iceberg. */
interface ReducibleTime extends ReducibleFunction<Integer, Integer> {

  /** Declared by every function. */
  DataType[] inputTypes();

  @Override
  default Reducer<Integer, Integer> reducer(ReducibleFunction<?, ?> other) {
    boolean fits =
        this instanceof HoursOfTimestamp
            && other instanceof DaysOfTimestamp days
            && Arrays.equals(days.inputTypes(), inputTypes());
    return fits ? new ToDays() : null;
  }

  /** The day of an hour; Spark sends it with tasks. */
  record ToDays() implements Reducer<Integer, Integer>, Serializable {

    @Override
    public Integer reduce(Integer hour) {
      return hour == null ? null : Math.floorDiv(hour, 24);
    }

    /** Used by Spark 4.2 and later. */
    public DataType resultType() {
      return DataTypes.DateType;
    }
  }
}
