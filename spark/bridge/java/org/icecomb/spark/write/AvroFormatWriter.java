package org.icecomb.spark.write;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.file.CodecFactory;
import org.apache.avro.file.DataFileWriter;
import org.apache.parquet.io.PositionOutputStream;
import org.apache.spark.sql.catalyst.InternalRow;
import org.icecomb.spark.planner.Json;

/** A writer of Avro, by Avro's own file writer, without column metrics. */
final class AvroFormatWriter implements FormatWriter {

  private final PositionOutputStream stream;
  private final DataFileWriter<InternalRow> writer;

  AvroFormatWriter(PlainOutputFile file, FileSettings settings) throws IOException {
    Schema schema = new Schema.Parser().parse(settings.fileSchema());
    writer = new DataFileWriter<>(new AvroRowEncoder(settings.schema()));
    writer.setCodec(codec(settings.writer()));
    settings.metadata().forEach(writer::setMeta);
    stream = file.create(0);
    try {
      writer.create(schema, stream);
    } catch (IOException | RuntimeException e) {
      stream.close();
      throw e;
    }
  }

  private static CodecFactory codec(Map<String, String> settings) {
    String name = settings.get("codec");
    return switch (name) {
      case "deflate" -> CodecFactory.deflateCodec(Integer.parseInt(settings.get("level")));
      case "zstandard" -> CodecFactory.zstandardCodec(Integer.parseInt(settings.get("level")));
      default -> CodecFactory.fromString(name);
    };
  }

  @Override
  public void write(InternalRow row) throws IOException {
    writer.append(row);
  }

  @Override
  public long size() throws IOException {
    return stream.getPos();
  }

  @Override
  public Contents finish() throws IOException {
    writer.close();
    return new Contents(List.of(), Json.array());
  }

  @Override
  public void close() throws IOException {
    writer.close();
  }
}
