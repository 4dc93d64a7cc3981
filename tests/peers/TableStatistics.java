import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.datasketches.memory.Memory;
import org.apache.datasketches.theta.CompactSketch;
import org.apache.datasketches.theta.SetOperationBuilder;
import org.apache.datasketches.theta.Sketch;
import org.apache.datasketches.theta.UpdateSketch;
import org.apache.iceberg.BlobMetadata;
import org.apache.iceberg.GenericBlobMetadata;
import org.apache.iceberg.GenericStatisticsFile;
import org.apache.iceberg.Snapshot;
import org.apache.iceberg.StatisticsFile;
import org.apache.iceberg.Table;
import org.apache.iceberg.data.IcebergGenerics;
import org.apache.iceberg.data.InternalRecordWrapper;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.io.CloseableIterable;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.puffin.Blob;
import org.apache.iceberg.puffin.Puffin;
import org.apache.iceberg.puffin.PuffinCompressionCodec;
import org.apache.iceberg.puffin.PuffinReader;
import org.apache.iceberg.puffin.PuffinWriter;
import org.apache.iceberg.puffin.StandardBlobTypes;
import org.apache.iceberg.types.Conversions;
import org.apache.iceberg.types.Types;
import org.apache.iceberg.util.Pair;

/** Statistics files by Iceberg Java, with sketches as its procedure on Spark makes them. */
final class TableStatistics {
  private TableStatistics() {}

  /** All statistics files of a table with their blobs, unpacked, and the estimates of sketches. */
  static List<Object> shown(Table table) throws IOException {
    List<Object> found = new ArrayList<>();
    for (StatisticsFile file : table.statisticsFiles()) {
      List<Object> blobs = new ArrayList<>();
      try (PuffinReader reader =
          Puffin.read(table.io().newInputFile(file.path()))
              .withFileSize(file.fileSizeInBytes())
              .withFooterSize(file.fileFooterSizeInBytes())
              .build()) {
        for (Pair<org.apache.iceberg.puffin.BlobMetadata, ByteBuffer> each :
            reader.readAll(reader.fileMetadata().blobs())) {
          byte[] content = new byte[each.second().remaining()];
          each.second().get(content);
          Map<String, Object> shown = new LinkedHashMap<>();
          shown.put("type", each.first().type());
          shown.put("fields", each.first().inputFields());
          shown.put("snapshot-id", each.first().snapshotId());
          shown.put("sequence-number", each.first().sequenceNumber());
          shown.put("properties", each.first().properties());
          shown.put("content", HexFormat.of().formatHex(content));
          shown.put("estimate", (long) CompactSketch.wrap(Memory.wrap(content)).getEstimate());
          blobs.add(shown);
        }
      }
      List<Object> told = new ArrayList<>();
      for (BlobMetadata each : file.blobMetadata()) {
        told.add(List.of(each.type(), each.fields(), each.sourceSnapshotId(), each.properties()));
      }
      Map<String, Object> shown = new LinkedHashMap<>();
      shown.put("snapshot-id", file.snapshotId());
      shown.put("path", file.path());
      shown.put("told", told);
      shown.put("blobs", blobs);
      found.add(shown);
    }
    return found;
  }

  /** Compute and set the statistics of the current snapshot. */
  static Object compute(Table table, List<String> columns) throws IOException {
    Snapshot snapshot = table.currentSnapshot();
    InternalRecordWrapper internal = new InternalRecordWrapper(table.schema().asStruct());
    UpdateSketch[] sketches = new UpdateSketch[columns.size()];
    for (int at = 0; at < sketches.length; at++) {
      sketches[at] = UpdateSketch.builder().build();
    }
    try (CloseableIterable<Record> rows = IcebergGenerics.read(table).build()) {
      for (Record row : rows) {
        for (int at = 0; at < sketches.length; at++) {
          Types.NestedField field = table.schema().findField(columns.get(at));
          int place = table.schema().columns().indexOf(field);
          Object value = internal.wrap(row).get(place, Object.class);
          if (value != null) {
            sketches[at].update(Conversions.toByteBuffer(field.type(), value));
          }
        }
      }
    }
    OutputFile output =
        table.io().newOutputFile(table.location() + "/metadata/" + UUID.randomUUID() + ".stats");
    try (PuffinWriter writer = Puffin.write(output).createdBy("a test").build()) {
      for (int at = 0; at < sketches.length; at++) {
        Sketch sketch =
            new SetOperationBuilder().buildUnion().union(UpdateSketch.builder().build(), sketches[at]);
        writer.add(
            new Blob(
                StandardBlobTypes.APACHE_DATASKETCHES_THETA_V1,
                List.of(table.schema().findField(columns.get(at)).fieldId()),
                snapshot.snapshotId(),
                snapshot.sequenceNumber(),
                ByteBuffer.wrap(sketch.toByteArray()),
                PuffinCompressionCodec.ZSTD,
                Map.of("ndv", String.valueOf((long) sketch.getEstimate()))));
      }
      writer.finish();
      List<BlobMetadata> told = new ArrayList<>();
      writer.writtenBlobsMetadata().forEach(each -> told.add(GenericBlobMetadata.from(each)));
      table
          .updateStatistics()
          .setStatistics(
              new GenericStatisticsFile(
                  snapshot.snapshotId(),
                  output.location(),
                  writer.fileSize(),
                  writer.footerSize(),
                  told))
          .commit();
    }
    return null;
  }
}
