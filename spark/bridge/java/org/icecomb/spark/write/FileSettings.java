package org.icecomb.spark.write;

import java.io.Serializable;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.types.StructType;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.FileInstructions;

/**
 * How the files of a write are written, data files or delete files.
 *
 * @param schema their columns with ids
 * @param fileSchema the schema in the format's own words, or null where Spark makes it
 * @param attributes what is said about each type of the schema, by its number, where the format is
 *     ORC
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
    return new FileSettings(
        Format.valueOf(files.format().toUpperCase(Locale.ROOT)),
        Schemas.parse(files.schema()),
        files.fileSchema(),
        files.attributes(),
        files.targetBytes(),
        files.writer(),
        files.metrics(),
        files.metadata());
  }

  /** What the names of the files end with. */
  String suffix() {
    return "." + format.name().toLowerCase(Locale.ROOT);
  }
}
