package org.icecomb.spark.write;

import java.util.List;
import java.util.Locale;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperation;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Protocol.QueriedTable;

/** UPDATE, DELETE or MERGE: the common part of both ways to change rows. */
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

  /** Records the statement's reads of the table besides the rows that it may change. */
  public final void read(List<QueriedTable> states) {
    queried = states;
  }

  /** The builder of the statement's write. */
  abstract class Builder extends IcecombWriteBuilder {

    Builder(LogicalWriteInfo info) {
      super(RowLevelChange.this.table, info);
    }

    @Override
    protected final List<QueriedTable> queried() {
      return queried;
    }

    /** The planner's name of the statement. */
    final String statement() {
      return command.name().toLowerCase(Locale.ROOT);
    }
  }
}
