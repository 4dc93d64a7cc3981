import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.iceberg.PartitionStatistics;
import org.apache.iceberg.PartitionStatisticsFile;
import org.apache.iceberg.PartitionStatsHandler;
import org.apache.iceberg.Partitioning;
import org.apache.iceberg.Table;
import org.apache.iceberg.io.CloseableIterable;

/** Partition statistics by Iceberg Java: its reader, and its counts as its procedure registers them. */
final class PartitionCounts {
  private PartitionCounts() {}

  /** The rows of the file of the current snapshot, in the order of the file. */
  static List<Object> shown(Table table) throws IOException {
    List<Object> found = new ArrayList<>();
    int fields = Partitioning.partitionType(table).fields().size();
    try (CloseableIterable<PartitionStatistics> rows = table.newPartitionStatisticsScan().scan()) {
      for (PartitionStatistics row : rows) {
        List<Object> partition = new ArrayList<>();
        for (int at = 0; at < fields; at++) {
          partition.add(IcebergLibrary.internal(row.partition().get(at, Object.class)));
        }
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("partition", partition);
        shown.put("spec_id", row.specId());
        shown.put("data_record_count", row.dataRecordCount());
        shown.put("data_file_count", row.dataFileCount());
        shown.put("total_data_file_size_in_bytes", row.totalDataFileSizeInBytes());
        shown.put("position_delete_record_count", row.positionDeleteRecordCount());
        shown.put("position_delete_file_count", row.positionDeleteFileCount());
        shown.put("dv_count", row.dvCount());
        shown.put("equality_delete_record_count", row.equalityDeleteRecordCount());
        shown.put("equality_delete_file_count", row.equalityDeleteFileCount());
        shown.put("total_record_count", row.totalRecords());
        shown.put("last_updated_at", row.lastUpdatedAt());
        shown.put("last_updated_snapshot_id", row.lastUpdatedSnapshotId());
        found.add(shown);
      }
    }
    return found;
  }

  /** Computes and registers the statistics of the current snapshot; shows their location. */
  static String compute(Table table) throws IOException {
    PartitionStatisticsFile file = PartitionStatsHandler.computeAndWriteStatsFile(table);
    table.updatePartitionStatistics().setPartitionStatistics(file).commit();
    return file.path();
  }

  /** Unregisters the statistics of the current snapshot. */
  static void remove(Table table) {
    long snapshot = table.currentSnapshot().snapshotId();
    table.updatePartitionStatistics().removePartitionStatistics(snapshot).commit();
  }
}
