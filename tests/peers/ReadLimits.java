package org.icecomb.spark.read;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Base64;
import java.util.stream.Collectors;
import org.apache.avro.Schema;
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
        answer = asked[0].equals("schema") ? schema(asked[2]) : vector(asked[1], asked[2]);
      } catch (Exception | StackOverflowError | OutOfMemoryError e) {
        answer = e.getClass().getSimpleName() + ": " + e.getMessage();
      }
      System.out.println(answer.replace('\n', ' '));
    }
  }

  private static String schema(String text) {
    Schema schema = new Schema.Parser().parse(text);
    AvroSchemaSize.check(schema);
    return String.valueOf(AvroSchemaSize.isEmpty(schema));
  }

  private static String vector(String rows, String blob) throws Exception {
    byte[] bytes = Base64.getDecoder().decode(blob);
    DeleteFile place = new DeleteFile("v", "puffin", Long.parseLong(rows), 0L, bytes.length);
    long[] found = new DeletionVector(place, bytes).positions();
    return Arrays.stream(found).limit(9).mapToObj(String::valueOf).collect(Collectors.joining(" "))
        + (found.length > 9 ? " of " + found.length : "");
  }
}
