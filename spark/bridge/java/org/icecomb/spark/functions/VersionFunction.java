package org.icecomb.spark.functions;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.catalog.functions.BoundFunction;
import org.apache.spark.sql.connector.catalog.functions.ScalarFunction;
import org.apache.spark.sql.connector.catalog.functions.UnboundFunction;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** The function {@code iceberg_version()}: the implementation of the catalog and its version. */
public final class VersionFunction implements UnboundFunction, ScalarFunction<UTF8String> {

  public static final String NAME = "iceberg_version";

  private final String version;

  public VersionFunction(String version) {
    this.version = version;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public String description() {
    return NAME + "(): what serves this catalog, and its version";
  }

  @Override
  public BoundFunction bind(StructType inputs) {
    if (inputs.fields().length > 0) {
      throw new UnsupportedOperationException(NAME + " takes no argument");
    }
    return this;
  }

  @Override
  public DataType[] inputTypes() {
    return new DataType[0];
  }

  @Override
  public DataType resultType() {
    return DataTypes.StringType;
  }

  @Override
  public boolean isResultNullable() {
    return false;
  }

  @Override
  public UTF8String produceResult(InternalRow input) {
    return UTF8String.fromString(version);
  }
}
