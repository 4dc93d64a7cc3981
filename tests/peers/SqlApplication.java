import org.apache.spark.sql.SparkSession;

/** An application of a cluster: its arguments are statements, carried out one after the other. */
public final class SqlApplication {

  private SqlApplication() {}

  public static void main(String[] statements) {
    SparkSession spark = SparkSession.builder().getOrCreate();
    for (String statement : statements) {
      spark.sql(statement).collectAsList();
    }
    spark.stop();
  }
}
