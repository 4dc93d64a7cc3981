package org.icecomb.spark.read;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.icecomb.spark.convert.Schemas;
import org.icecomb.spark.planner.Protocol.DeleteFile;

/** What executors make of schemas and deletion vectors, one a line: an answer, or an error. */
final class ReadLimits {

  private ReadLimits() {}

  public static void main(String[] none) throws Exception {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] asked = line.split(" ", 3);
      String answer;
      try {
        answer =
            switch (asked[0]) {
              case "schema" -> schema(asked[2]);
              case "avro", "parquet" ->
                  file(asked[0], DataTypes.StringType, asked[1], Path.of(asked[2]));
              case "lists" ->
                  file(
                      "avro", DataTypes.createArrayType(DataTypes.LongType), asked[1],
                      Path.of(asked[2]));
              default -> vector(asked[1], asked[2]);
            };
      } catch (Exception | StackOverflowError | OutOfMemoryError e) {
        answer = e.getClass().getSimpleName() + ": " + e.getMessage();
        answer += e.getCause() instanceof Error ? " because of an error" : "";
      }
      System.out.println(answer.replace('\n', ' '));
    }
  }

  private static String schema(String text) {
    Schema schema = new Schema.Parser().parse(text);
    AvroSchemaSize.check(schema);
    return String.valueOf(AvroSchemaSize.isEmpty(schema));
  }

  /** Reads the columns {@code id} and {@code a} of a file with a stated number of rows. */
  private static String file(String format, DataType a, String rows, Path file) throws Exception {
    StructType columns =
        Schemas.struct(
            List.of(
                Schemas.withId("id", DataTypes.LongType, 1),
                Schemas.withId("a", a, 2)));
    Configuration hadoop = new Configuration();
    ReadSettings.configure(hadoop, SQLConf.get());
    FileRequest request =
        new FileRequest(
            hadoop, ReadSettings.of(SQLConf.get(), hadoop, 3), format,
            new org.apache.hadoop.fs.Path(file.toUri()), 0, Files.size(file), Long.parseLong(rows),
            columns, false, null, List.of(), null);
    StringBuilder found = new StringBuilder();
    try (FormatReader reader = FormatReader.open(request)) {
      while (reader.next()) {
        for (int i = 0; i < reader.rows(); i++) {
          ColumnVector column = reader.column(1);
          found.append(
              column == null
                  ? ""
                  : a instanceof ArrayType
                      ? column.getArray(i).numElements() + " "
                      : column.getUTF8String(i) + " ");
        }
      }
    }
    return found.toString();
  }

  private static String vector(String rows, String blob) throws Exception {
    byte[] bytes = Base64.getDecoder().decode(blob);
    DeleteFile place = new DeleteFile("v", "puffin", Long.parseLong(rows), 0L, bytes.length);
    long[] found = new DeletionVector(place, bytes).positions();
    return Arrays.stream(found).limit(9).mapToObj(String::valueOf).collect(Collectors.joining(" "))
        + (found.length > 9 ? " of " + found.length : "");
  }
}
