package org.icecomb.spark.write;

import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Protocol.QueriedTable;

/** UPDATE, DELETE or MERGE: what both ways to change rows have in common. */
public abstract sealed class RowLevelChange implements RowLevelOperation
    permits RowLevelDelta, RowLevelRewrite {

  final TableHandle table;
  private final Command command;
  private List<QueriedTable> queried = List.of();

  RowLevelChange(TableHandle table, Command command) {
    this.table = table;
    this.command = command;
  }

  @Override
  public final Command command() {
    return command;
  }

  @Override
  public final String description() {
    return "icecomb " + command + " of " + table.name();
  }

  /** Takes down what the statement reads of the table besides the rows that it may change. */
  public final void read(List<QueriedTable> states) {
    queried = states;
  }

  /** Asks for the write of the statement. */
  abstract class Builder extends IcecombWriteBuilder {

    Builder(LogicalWriteInfo info) {
      super(RowLevelChange.this.table, info);
    }

    @Override
    protected final List<QueriedTable> queried() {
      return queried;
    }

    /** The word that the planner knows the statement by. */
    final String statement() {
      return command.name().toLowerCase(Locale.ROOT);
    }
  }
}
