package org.icecomb.spark.read;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.connector.read.streaming.CompositeReadLimit;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.connector.read.streaming.Offset;
import org.apache.spark.sql.connector.read.streaming.ReadLimit;
import org.apache.spark.sql.connector.read.streaming.ReadMaxFiles;
import org.apache.spark.sql.connector.read.streaming.ReadMaxRows;
import org.apache.spark.sql.connector.read.streaming.SupportsTriggerAvailableNow;
import org.icecomb.spark.TableHandle;
import org.icecomb.spark.planner.Protocol.LatestOffset;
import org.icecomb.spark.planner.Protocol.OpenStream;
import org.icecomb.spark.planner.Protocol.OpenedStream;
import org.icecomb.spark.planner.Protocol.PlanStream;
import org.icecomb.spark.planner.Protocol.ScanPage;
import org.icecomb.spark.planner.Protocol.ScanPlan;
import org.icecomb.spark.planner.Protocol.StreamEnd;
import org.icecomb.spark.planner.Protocol.StreamPosition;

/** A stream of rows appended to a table: the planner determines the batches. */
final class AppendStream implements MicroBatchStream, SupportsTriggerAvailableNow {

  private final IcecombScan scan;
  private final TableHandle table;
  private final OpenedStream opened;
  private String until;
  private PlannedTasks tasks;
  private JsonNode nameMapping;

  /**
   * @param checkpoint the folder of this source in the query's checkpoint
   */
  AppendStream(IcecombScan scan, TableHandle table, String checkpoint) {
    this.scan = scan;
    this.table = table;
    StreamBeginning beginning = new StreamBeginning(checkpoint);
    String known = beginning.read();
    this.opened = table.ask(new OpenStream(scan.request(), known), OpenedStream.class);
    if (known == null) {
      beginning.write(opened.initial());
    }
  }

  boolean vectorized() {
    return opened.vectorized();
  }

  @Override
  public Offset initialOffset() {
    return new Position(opened.initial());
  }

  @Override
  public Offset deserializeOffset(String json) {
    return new Position(json);
  }

  @Override
  public ReadLimit getDefaultReadLimit() {
    Integer files = opened.maxFiles();
    Long rows = opened.maxRows();
    if (files != null && rows != null) {
      ReadLimit[] both = {ReadLimit.maxRows(rows), ReadLimit.maxFiles(files)};
      return ReadLimit.compositeLimit(both);
    }
    if (files != null) {
      return ReadLimit.maxFiles(files);
    }
    return rows != null ? ReadLimit.maxRows(rows) : ReadLimit.allAvailable();
  }

  /** Called once, before the first batch: the query ends with the current snapshot. */
  @Override
  public void prepareForTriggerAvailableNow() {
    until = end();
  }

  /** Not used by Spark, which calls the method with a limit. */
  @Override
  public Offset latestOffset() {
    return position(end());
  }

  /** The end of the next batch, or null if there is nothing to read. */
  @Override
  public Offset latestOffset(Offset start, ReadLimit limit) {
    ReadLimit[] limits =
        limit instanceof CompositeReadLimit both ? both.getReadLimits() : new ReadLimit[] {limit};
    Integer files = null;
    Long rows = null;
    for (ReadLimit each : limits) {
      if (each instanceof ReadMaxFiles most) {
        files = most.maxFiles();
      } else if (each instanceof ReadMaxRows most) {
        rows = most.maxRows();
      }
    }
    LatestOffset request = new LatestOffset(opened.stream(), start.json(), files, rows, until);
    return position(table.ask(request, StreamPosition.class).offset());
  }

  @Override
  public InputPartition[] planInputPartitions(Offset start, Offset end) {
    PlanStream request = new PlanStream(opened.stream(), scan.request(), start.json(), end.json());
    ScanPlan plan = table.ask(request, ScanPage.class, this::begun, ScanPlan.class);
    nameMapping = plan.nameMapping();
    return scan.partitions(plan, tasks.complete(), path -> true, new BlockLocations());
  }

  /** Starts from scratch, because a request to a lost planner is repeated with all pages. */
  private PlannedTasks begun() {
    tasks = scan.newTasks();
    return tasks;
  }

  /** Spark asks for the readers of a batch after its partitions. */
  @Override
  public PartitionReaderFactory createReaderFactory() {
    return scan.readers(opened.vectorized(), opened.batchRows(), nameMapping);
  }

  @Override
  public void commit(Offset end) {}

  @Override
  public void stop() {}

  private String end() {
    return table.ask(new StreamEnd(opened.stream()), StreamPosition.class).offset();
  }

  private static Offset position(String text) {
    return text == null ? null : new Position(text);
  }

  /** An offset, opaque to the bridge. */
  private static final class Position extends Offset {

    private final String text;

    Position(String text) {
      this.text = text;
    }

    @Override
    public String json() {
      return text;
    }
  }
}
