import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspector;
import org.apache.hadoop.hive.serde2.objectinspector.ObjectInspectorConverters;
import org.apache.hadoop.hive.serde2.objectinspector.primitive.PrimitiveObjectInspectorFactory;
import org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils;

/**
 * Reads lines of a type, a tab and a partition's text, and says what Hive takes the text for: the
 * conversion of FetchOperator.createPartValue and MapOperator.
 */
public final class HiveValue {
  public static void main(String[] arguments) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line; (line = in.readLine()) != null; ) {
      String[] parts = line.split("\t", 2);
      var type = (PrimitiveTypeInfo) TypeInfoUtils.getTypeInfoFromTypeString(parts[0]);
      ObjectInspector text = PrimitiveObjectInspectorFactory.javaStringObjectInspector;
      ObjectInspector wanted =
          PrimitiveObjectInspectorFactory.getPrimitiveWritableObjectInspector(type);
      Object value = ObjectInspectorConverters.getConverter(text, wanted).convert(parts[1]);
      out.println(value == null ? "NULL" : "=" + value);
    }
  }
}
