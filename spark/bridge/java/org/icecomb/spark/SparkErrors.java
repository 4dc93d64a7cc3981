package org.icecomb.spark;

import static java.util.Map.entry;

import java.lang.reflect.Constructor;
import java.util.Arrays;
import java.util.function.BiFunction;
import org.apache.spark.SparkException;
import org.apache.spark.SparkThrowable;
import org.apache.spark.QueryContext;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.catalyst.analysis.NamespaceAlreadyExistsException;
import org.apache.spark.sql.catalyst.analysis.NoSuchNamespaceException;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.catalyst.analysis.NoSuchViewException;
import org.apache.spark.sql.catalyst.analysis.NonEmptyNamespaceException;
import org.apache.spark.sql.catalyst.analysis.TableAlreadyExistsException;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.trees.CurrentOrigin;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.catalyst.analysis.ViewAlreadyExistsException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.TableChange;
import org.icecomb.spark.planner.PlannerException;
import org.icecomb.spark.statement.StatementChange;
import scala.Option;
import scala.collection.immutable.Map;

/** Conversion of the planner's errors to the exceptions that Spark's rules and users know. */
public final class SparkErrors {

  /**
   * The exceptions of errors of planning and of commits by the names of the planner's classes:
   * those of the JDK and of Spark that Iceberg's runtime throws, for programs that catch them.
   * {@link AnalysisException} stands for all others, as for Iceberg's own classes.
   */
  private static final java.util.Map<String, BiFunction<String, Throwable, Throwable>> CLASSES =
      java.util.Map.ofEntries(
          entry("CommitFailedError", SparkException::new),
          entry("CommitStateUnknownError", SparkException::new),
          entry(PlannerException.LOST, SparkException::new),
          entry(PlannerException.CANCELED, SparkException::new),
          entry("AlreadyCommittedError", SparkErrors::analysis),
          entry("AlreadyPublishedError", SparkErrors::analysis),
          entry("ConflictError", SparkErrors::analysis),
          entry("StatementError", SparkErrors::analysis),
          entry("NoSuchSnapshotError", IllegalArgumentException::new),
          entry("ValidationError", IllegalArgumentException::new),
          entry("UnsupportedError", UnsupportedOperationException::new));

  private SparkErrors() {}

  /** The exception for an error about a table. */
  public static RuntimeException ofTable(PlannerException error, Identifier table) {
    return switch (error.type()) {
      case "NoSuchTableError" -> unchecked(new NoSuchTableException(table));
      case "TableAlreadyExistsError", "ViewAlreadyExistsError" ->
          unchecked(new TableAlreadyExistsException(table));
      case "NoSuchNamespaceError" -> unchecked(new NoSuchNamespaceException(table.namespace()));
      default -> other(error);
    };
  }

  /** The exception for an error about a view. */
  public static RuntimeException ofView(PlannerException error, Identifier view) {
    return switch (error.type()) {
      case "NoSuchViewError", "NoSuchIcebergViewError" -> unchecked(new NoSuchViewException(view));
      case "TableAlreadyExistsError", "ViewAlreadyExistsError" ->
          unchecked(new ViewAlreadyExistsException(view));
      case "NoSuchNamespaceError" -> unchecked(new NoSuchNamespaceException(view.namespace()));
      default -> other(error);
    };
  }

  /** The exception for an error about a namespace. */
  public static RuntimeException ofNamespace(PlannerException error, String[] namespace) {
    return switch (error.type()) {
      case "NoSuchNamespaceError" -> unchecked(new NoSuchNamespaceException(namespace));
      case "NamespaceAlreadyExistsError" ->
          unchecked(new NamespaceAlreadyExistsException(namespace));
      case "NamespaceNotEmptyError" -> unchecked(new NonEmptyNamespaceException(namespace));
      default -> other(error);
    };
  }

  /** The exception for an error of planning or of a commit. */
  public static RuntimeException other(PlannerException error) {
    return unchecked(
        error.types().stream()
            .filter(CLASSES::containsKey)
            .findFirst()
            .<BiFunction<String, Throwable, Throwable>>map(CLASSES::get)
            .orElse(SparkErrors::analysis)
            .apply(error.explanation(), error));
  }

  /**
   * The exception for changes of a table that are refused as illegal, which Spark would hide in a
   * {@link SparkException}. Iceberg's statements throw the class of the refusal itself.
   */
  static RuntimeException ofChange(IllegalArgumentException refusal, TableChange[] changes) {
    return Arrays.stream(changes).anyMatch(StatementChange.class::isInstance)
        ? new RefusedStatement(refusal)
        : unchecked(analysis(refusal.getMessage(), refusal));
  }

  /** The exception for an unsupported statement, with a hint. */
  public static RuntimeException unsupported(String message, String hint) {
    return unchecked(analysis(message + "\n  hint: " + hint, null));
  }

  /** The exception for a statement that the planner refuses, with its hint. */
  public static RuntimeException refused(String explanation) {
    return unchecked(analysis(explanation, null));
  }

  /**
   * A parser's error as declared by the parser interface: a {@link java.lang.reflect.Proxy} hides
   * any other checked exception from the user.
   */
  public static Throwable declared(Throwable error) {
    if (error instanceof RuntimeException
        || error instanceof Error
        || error instanceof ParseException) {
      return error;
    }
    for (Constructor<?> constructor : ParseException.class.getConstructors()) {
      Class<?>[] types = constructor.getParameterTypes();
      if (types[0] == Option.class && types[types.length - 1] == Map.class && types[1] == Origin.class) {
        Object[] values = new Object[types.length];
        Arrays.fill(values, CurrentOrigin.get());
        values[0] = Option.empty();
        values[types.length - 2] = "PARSE_SYNTAX_ERROR";
        values[types.length - 1] =
            new Map.Map2<>("error", String.valueOf(error.getMessage()), "hint", "");
        try {
          Throwable declared = (Throwable) constructor.newInstance(values);
          declared.addSuppressed(error);
          return declared;
        } catch (ReflectiveOperationException e) {
          return new IllegalStateException(error);
        }
      }
    }
    return new IllegalStateException(error);
  }

  /** An error with its own message, shown to the user without a class name in front. */
  static AnalysisException analysis(String message, Throwable cause) {
    return new AnalysisException(
        message,
        Option.empty(),
        Option.empty(),
        Option.apply(cause),
        Option.empty(),
        scala.collection.immutable.Map$.MODULE$.empty(),
        new QueryContext[0]) {};
  }

  /** A refusal that Spark passes on: it wraps only those that are not its own. */
  private static final class RefusedStatement extends IllegalArgumentException
      implements SparkThrowable {

    RefusedStatement(IllegalArgumentException refusal) {
      super(refusal.getMessage(), refusal.getCause());
    }

    /** The condition's name before Spark 4.0. */
    public String getErrorClass() {
      return null;
    }

    /** The condition's name since Spark 4.0. */
    public String getCondition() {
      return null;
    }
  }

  /**
   * Throws a checked exception where Java does not allow one; Spark's Scala code expects these.
   */
  @SuppressWarnings("unchecked")
  public static <E extends Throwable> RuntimeException unchecked(Throwable error) throws E {
    throw (E) error;
  }
}
