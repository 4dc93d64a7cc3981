package org.icecomb.spark.view;

import java.lang.reflect.Constructor;
import java.util.Map;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.CatalogStorageFormat;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.catalog.CatalogTable$;
import org.apache.spark.sql.catalyst.catalog.CatalogTableType;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map$;

/** Spark's own description of a view. */
final class SparkViews {

  // the indices of members that are the same in all versions; each version appends some
  private static final int CREATE_VERSION = 10;
  private static final int PROPERTIES = 11;
  private static final int VIEW_TEXT = 13;

  private SparkViews() {}

  static CatalogTable table(
      TableIdentifier identifier,
      StructType schema,
      String query,
      Map<String, String> properties,
      String sparkVersion) {
    try {
      Constructor<?> constructor = CatalogTable.class.getConstructors()[0];
      Object[] members = new Object[constructor.getParameterCount()];
      for (int i = 0; i < members.length; i++) {
        members[i] =
            switch (i) {
              case 0 -> identifier;
              case 1 -> CatalogTableType.VIEW();
              case 2 -> CatalogStorageFormat.empty();
              case 3 -> schema;
              case CREATE_VERSION -> sparkVersion;
              case PROPERTIES -> scala(properties);
              case VIEW_TEXT -> Option.apply(query);
              default ->
                  CatalogTable$.class
                      .getMethod("apply$default$" + (i + 1))
                      .invoke(CatalogTable$.MODULE$);
            };
      }
      return (CatalogTable) constructor.newInstance(members);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  private static scala.collection.immutable.Map<String, String> scala(Map<String, String> map) {
    scala.collection.immutable.Map<String, String> found = Map$.MODULE$.empty();
    for (Map.Entry<String, String> each : map.entrySet()) {
      found = found.$plus(new Tuple2<>(each.getKey(), each.getValue()));
    }
    return found;
  }
}
