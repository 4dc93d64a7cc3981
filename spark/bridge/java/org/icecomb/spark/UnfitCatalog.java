package org.icecomb.spark;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.connector.catalog.CatalogPlugin;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import scala.collection.JavaConverters;

/**
 * A replacement of icecomb's catalogs if the jar is for another Spark, in which their classes may
 * not even load, without an explanation. Everything else in the session works.
 */
public final class UnfitCatalog implements CatalogPlugin {

  private static final String CATALOGS = "spark.sql.catalog.";
  private static final String OURS = UnfitCatalog.class.getPackageName() + ".";

  /** Wraps a session's parser: tables of a statement are looked up after it has been parsed. */
  static ParserInterface before(SparkSession session, ParserInterface parser) {
    return (ParserInterface)
        Proxy.newProxyInstance(
            parser.getClass().getClassLoader(),
            new Class<?>[] {ParserInterface.class},
            (proxy, method, arguments) -> {
              replaceCatalogs(SQLConf.get());
              try {
                return method.invoke(parser, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** Called for each statement, as a session applies its own settings after its extensions. */
  private static void replaceCatalogs(SQLConf conf) {
    JavaConverters.mapAsJavaMap(conf.getAllConfs())
        .forEach(
            (key, value) -> {
              boolean names = key.startsWith(CATALOGS) && key.lastIndexOf('.') < CATALOGS.length();
              if (names && value.startsWith(OURS)) {
                conf.setConfString(key, UnfitCatalog.class.getName());
              }
            });
  }

  @Override
  public void initialize(String name, CaseInsensitiveStringMap options) {
    throw new UnsupportedOperationException(FittingSpark.complaint());
  }

  @Override
  public String name() {
    return "unfit";
  }
}
