package org.icecomb.spark.write;

import java.io.Serializable;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.convert.Variants;
import org.icecomb.spark.planner.Protocol.FileInstructions;

/**
 * Settings for writing the data files or delete files of a write.
 *
 * @param schema their columns with ids
 * @param fileSchema the schema in the file format, or null if Spark creates it
 * @param attributes for ORC: the attributes of each type of the schema, by its id
 * @param targetBytes size at which a new file is begun
 * @param writer settings of the format's writer
 * @param metrics Iceberg's metrics mode of columns that have one, by field id
 * @param metadata key and value pairs for every file
 */
record FileSettings(
    Format format,
    StructType schema,
    String fileSchema,
    List<Map<String, String>> attributes,
    long targetBytes,
    Map<String, String> writer,
    Map<String, String> metrics,
    Map<String, String> metadata)
    implements Serializable {

  /** The formats of data files. */
  enum Format {
    PARQUET,
    ORC,
    AVRO
  }

  static FileSettings of(FileInstructions files) {
    Format format = Format.valueOf(files.format().toUpperCase(Locale.ROOT));
    StructType schema = Schemas.parse(files.schema());
    checkVariants(format, schema);
    return new FileSettings(
        format,
        schema,
        files.fileSchema(),
        files.attributes(),
        files.targetBytes(),
        files.writer(),
        files.metrics(),
        files.metadata());
  }

  private static void checkVariants(Format format, StructType schema) {
    Variants.check(schema, false);
    StructField variant = Variants.first(schema);
    if (variant != null && format == Format.PARQUET && !VariantGroup.IS_ANNOTATED) {
      throw SparkErrors.unsupported(
          "Column " + variant.name() + " cannot be written to Parquet by Spark "
              + SparkSession.active().version()
              + ": its Parquet lacks the annotation by which readers know variants",
          "Use Spark 4.1 or later, write from Python, or set write.format.default to avro.");
    }
  }

  /** The suffix of the files' names. */
  String suffix() {
    return "." + format.name().toLowerCase(Locale.ROOT);
  }
}
