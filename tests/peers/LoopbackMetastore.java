import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.InetAddress;

/**
 * A Hive metastore that listens on the loopback address only: older ones know no such setting.
 *
 * <p>Usage, with METASTORE_HOME set: {@code LoopbackMetastore SCHEMA_TOOL_CLASS DATABASE_TYPE PORT}; it makes the
 * schema first, unless the type is "made". Run with {@code -Djava.net.preferIPv4Stack=true} and java.net opened.
 */
public final class LoopbackMetastore {
  public static void main(String[] args) throws Throwable {
    Thread parent = new Thread(LoopbackMetastore::endWithParent, "parent");
    parent.setDaemon(true);
    parent.start();
    Object addresses = field(InetAddress.class, "impl").get(null);
    field(addresses.getClass(), "anyLocalAddress").set(addresses, InetAddress.getLoopbackAddress());
    if (!args[1].equals("made")) {
      makeSchema(Class.forName(args[0]), args[1]);
    }
    Class<?> server = Class.forName("org.apache.hadoop.hive.metastore.HiveMetaStore");
    Object arguments = new String[] {"-p", args[2]};
    server.getMethod("main", String[].class).invoke(null, arguments);
  }

  /** Standard input ends when whoever started this does, however that came about. */
  private static void endWithParent() {
    try {
      while (System.in.read() >= 0) {}
    } catch (java.io.IOException e) {
      // the same
    }
    System.exit(0);
  }

  private static void makeSchema(Class<?> tool, String databaseType) throws Exception {
    Method run = tool.getDeclaredMethod("run", String[].class);
    run.setAccessible(true);
    Object instance = null;
    if (!Modifier.isStatic(run.getModifiers())) {
      var constructor = tool.getDeclaredConstructor();
      constructor.setAccessible(true);
      instance = constructor.newInstance();
    }
    Object arguments = new String[] {"-dbType", databaseType, "-initSchema"};
    if ((Integer) run.invoke(instance, arguments) != 0) {
      throw new IllegalStateException("the schema could not be made");
    }
  }

  private static Field field(Class<?> kind, String name) throws Exception {
    Field found = kind.getDeclaredField(name);
    found.setAccessible(true);
    return found;
  }
}
