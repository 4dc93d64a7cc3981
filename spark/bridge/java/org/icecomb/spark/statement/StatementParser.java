package org.icecomb.spark.statement;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.SetTableProperties;
import org.apache.spark.sql.execution.command.CreateTableLikeCommand;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.internal.VariableSubstitution;
import org.icecomb.spark.SparkErrors;
import org.icecomb.spark.SparkVersion;
import org.icecomb.spark.view.ViewStatements;
import scala.collection.JavaConverters;

/**
 * A parser in front of Spark's for the statements of Iceberg's SQL extensions on icecomb tables:
 * partition fields, write order, identifier fields, branches and tags. Everything else is passed
 * on.
 *
 * <p>It implements whatever interfaces the parser below has: Spark's own grows with every version,
 * and other extensions look for theirs.
 */
public final class StatementParser implements InvocationHandler {

  private final SparkSession session;
  private final ParserInterface delegate;

  private StatementParser(SparkSession session, ParserInterface delegate) {
    this.session = session;
    this.delegate = delegate;
  }

  /** The parser of a session, with icecomb's statements in front. */
  public static ParserInterface over(SparkSession session, ParserInterface delegate) {
    return (ParserInterface)
        Proxy.newProxyInstance(
            delegate.getClass().getClassLoader(),
            interfaces(delegate.getClass()).toArray(new Class<?>[0]),
            new StatementParser(session, delegate));
  }

  private static Set<Class<?>> interfaces(Class<?> parser) {
    Set<Class<?>> found = new LinkedHashSet<>();
    for (Class<?> each = parser; each != null; each = each.getSuperclass()) {
      for (Class<?> candidate : each.getInterfaces()) {
        if (Modifier.isPublic(candidate.getModifiers())) {
          found.add(candidate);
        }
      }
    }
    return found;
  }

  @Override
  public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
    try {
      return answer(method, arguments);
    } catch (Throwable e) {
      throw SparkErrors.declared(e);
    }
  }

  private Object answer(Method method, Object[] arguments) throws Throwable {
    if (method.getName().startsWith("parsePlan") && arguments[0] instanceof String text) {
      String substituted = new VariableSubstitution().substitute(text);
      AlterStatement statement = AlterStatement.find(substituted);
      if (statement != null) {
        return plan(statement, method, arguments);
      }
      CallStatement called = SparkVersion.hasCall() ? null : CallStatement.find(substituted);
      if (called != null && isOurs(called.procedure())) {
        return plan(called, method, arguments);
      }
      LikeStatement like = SparkVersion.hasLike() ? null : LikeStatement.find(substituted);
      if (like != null && isOurs(like.target())) {
        return plan(like, method, arguments);
      }
      if (!SparkVersion.hasViews() && call(method, arguments) instanceof LogicalPlan plan) {
        return new ViewStatements(session).rewritten(plan);
      }
    }
    return call(method, arguments);
  }

  private LogicalPlan plan(AlterStatement statement, Method method, Object[] arguments)
      throws Throwable {
    boolean ours = isOurs(statement.table());
    if (!ours || !statement.certain()) {
      try {
        return (LogicalPlan) call(method, arguments);
      } catch (ParseException e) {
        if (!ours && !statement.certain()) {
          throw e;
        }
        // nobody else has such statements: the planner reports errors in the text, or the plan that
        // the table is not an icecomb table
      }
    }
    Object[] framed = arguments.clone();
    framed[0] = statement.frame();
    return altering((LogicalPlan) call(method, framed), statement.change());
  }

  private LogicalPlan plan(CallStatement statement, Method method, Object[] arguments)
      throws Throwable {
    ProcedureCall called;
    try {
      called = ProcedureCall.of(delegate.parseExpression(statement.invocation()));
    } catch (ParseException e) {
      throw e.withCommand((String) arguments[0]);
    }
    Object[] framed = arguments.clone();
    framed[0] = statement.frame();
    return call(method, framed) instanceof ExplainCommand explain
        ? new ExplainCommand(called, explain.mode())
        : called;
  }

  private Object plan(LikeStatement statement, Method method, Object[] arguments)
      throws Throwable {
    Object[] framed = arguments.clone();
    framed[0] = statement.frame();
    Object read;
    try {
      read = call(method, framed);
    } catch (ParseException e) {
      throw e.withCommand((String) arguments[0]);
    }
    LogicalPlan clauses =
        read instanceof ExplainCommand explain ? explain.logicalPlan() : (LogicalPlan) read;
    TableLike like =
        new TableLike(
            session,
            parts(statement.target()),
            parts(statement.source()),
            (CreateTableLikeCommand) clauses);
    if (!like.isOurs()) {
      return call(method, arguments);
    }
    return read instanceof ExplainCommand explain
        ? new ExplainCommand(like.command(), explain.mode())
        : like.command();
  }

  private List<String> parts(String name) throws ParseException {
    return JavaConverters.seqAsJavaList(delegate.parseMultipartIdentifier(name));
  }

  private boolean isOurs(String name) {
    try {
      return StatementCatalog.find(session, parts(name)) != null;
    } catch (Exception e) {
      // Spark reports the error in the name
      return false;
    }
  }

  private static LogicalPlan altering(LogicalPlan frame, String change) {
    if (frame instanceof ExplainCommand explain) {
      return new ExplainCommand(altering(explain.logicalPlan(), change), explain.mode());
    }
    return new Alteration(((SetTableProperties) frame).table(), change);
  }

  private Object call(Method method, Object[] arguments) throws Throwable {
    try {
      return method.invoke(delegate, arguments);
    } catch (InvocationTargetException e) {
      throw e.getCause();
    }
  }
}
