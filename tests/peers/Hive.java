import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Method;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Hive itself, its compiler and its MapReduce jobs, in one process.
 *
 * <p>{@code Hive KEY=VALUE ...} are settings. Each line of standard input is a statement; it is
 * answered by its rows, each after a bar, and by {@code ok} or {@code failed} and the reason.
 */
public final class Hive {
  private Hive() {}

  public static void main(String[] settings) throws Exception {
    PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // where Hive tells of its jobs
    // Hive 3 takes the loader of its classes for one to which jars can be added.
    URLClassLoader loader = new URLClassLoader(classPath(), ClassLoader.getPlatformClassLoader());
    Thread.currentThread().setContextClassLoader(loader);
    Class<?> confClass = loader.loadClass("org.apache.hadoop.hive.conf.HiveConf");
    Object conf = confClass.getConstructor().newInstance();
    Method set = confClass.getMethod("set", String.class, String.class);
    for (String setting : settings) {
      int at = setting.indexOf('=');
      set.invoke(conf, setting.substring(0, at), setting.substring(at + 1));
    }
    Class<?> session = loader.loadClass("org.apache.hadoop.hive.ql.session.SessionState");
    session
        .getMethod("start", session)
        .invoke(null, session.getConstructor(confClass).newInstance(conf));
    Method newDriver =
        loader
            .loadClass("org.apache.hadoop.hive.ql.DriverFactory")
            .getMethod("newDriver", confClass);
    Class<?> driverClass = loader.loadClass("org.apache.hadoop.hive.ql.IDriver");
    answers.println("ready");
    BufferedReader statements =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = statements.readLine(); line != null; line = statements.readLine()) {
      if (line.startsWith("SET ")) { // the command line's, not the driver's
        set.invoke(conf, line.substring(4, line.indexOf('=')), line.substring(line.indexOf('=') + 1));
        answers.println("ok");
        continue;
      }
      Object driver = newDriver.invoke(null, conf);
      run(driverClass, driver, line, answers);
      driverClass.getMethod("close").invoke(driver);
    }
    System.exit(0);
  }

  private static void run(Class<?> driverClass, Object driver, String line, PrintStream answers)
      throws ReflectiveOperationException {
    Object done = driverClass.getMethod("run", String.class).invoke(driver, line);
    int code = (Integer) done.getClass().getMethod("getResponseCode").invoke(done);
    if (code != 0) {
      Object reason = done.getClass().getMethod("getErrorMessage").invoke(done);
      answers.println("failed " + String.valueOf(reason).replace('\n', ' '));
      return;
    }
    List<Object> rows = new ArrayList<>();
    Method results = driverClass.getMethod("getResults", List.class);
    while ((Boolean) results.invoke(driver, rows)) {
      rows.forEach(row -> answers.println("|" + row));
      rows.clear();
    }
    answers.println("ok");
  }

  private static URL[] classPath() throws MalformedURLException {
    List<URL> found = new ArrayList<>();
    for (String part : System.getProperty("java.class.path").split(File.pathSeparator)) {
      found.add(Path.of(part).toUri().toURL());
    }
    return found.toArray(new URL[0]);
  }
}
