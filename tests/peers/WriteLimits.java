package org.icecomb.spark.write;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.execution.datasources.parquet.ParquetWriteSupport;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;

/** What executors make of a file whose column has a bloom filter of so many bytes. */
final class WriteLimits {

  private WriteLimits() {}

  public static void main(String[] asked) throws Exception {
    StructType columns = Schemas.struct(List.of(Schemas.withId("a", DataTypes.StringType, 1)));
    Configuration conf = new Configuration();
    conf.set(ParquetWriteSupport.SPARK_ROW_SCHEMA(), Schemas.setting(columns));
    conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS");
    conf.set("spark.sql.parquet.writeLegacyFormat", "false");
    conf.set("spark.sql.parquet.fieldId.write.enabled", "false");
    conf.set("spark.sql.parquet.variant.annotateLogicalType.enabled", "false");
    Map<String, String> settings = new HashMap<>();
    settings.put("compression", "uncompressed");
    settings.put("parquet.bloom.filter.enabled#a", "true");
    settings.put("parquet.bloom.filter.max.bytes", asked[0]);
    settings.put("parquet.bloom.filter.expected.ndv#a", "2000000000");
    FileSettings files =
        new FileSettings(
            FileSettings.Format.PARQUET, columns, null, List.of(), 1L << 30, settings, Map.of(),
            Map.of());
    try {
      new DataFileWriter(conf, files, new Path(asked[1]), "a file", null);
      System.out.println("opened");
    } catch (Exception | OutOfMemoryError e) {
      System.out.println((e.getClass().getSimpleName() + ": " + e.getMessage()).replace('\n', ' '));
    }
  }
}
