import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.column.ColumnDescriptor;
import org.apache.parquet.column.page.PageReadStore;
import org.apache.parquet.column.page.PageReader;
import org.apache.parquet.hadoop.ParquetFileReader;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.schema.MessageType;

/** Hadoop's own client: write LOCATION MIB | read LOCATION | scan LOCATION COLUMN; prints a JSON line. */
public final class HdfsJava {
  private static final int PIECE = 8 << 20;

  private HdfsJava() {}

  public static void main(String[] arguments) throws IOException {
    Configuration configuration = new Configuration();
    Path path = new Path(arguments[1]);
    FileSystem files = path.getFileSystem(configuration);
    files.exists(path);
    OperatingSystemMXBean process =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    long wall = System.nanoTime();
    long cpu = process.getProcessCpuTime();
    long bytes;
    if (arguments[0].equals("write")) {
      bytes = write(files, path, Integer.parseInt(arguments[2]));
    } else if (arguments[0].equals("read")) {
      bytes = read(files, path);
    } else {
      bytes = scan(path, configuration, arguments[2]);
    }
    System.out.printf(
        Locale.ROOT,
        "RESULT {\"bytes\": %d, \"work_s\": %.4f, \"work_cpu_s\": %.4f}%n",
        bytes,
        (System.nanoTime() - wall) / 1e9,
        (process.getProcessCpuTime() - cpu) / 1e9);
  }

  private static long write(FileSystem files, Path path, int mebibytes) throws IOException {
    byte[] piece = new byte[PIECE];
    new Random(1).nextBytes(piece);
    try (FSDataOutputStream out = files.create(path, true)) {
      for (int written = 0; written < mebibytes << 20; written += PIECE) {
        out.write(piece);
      }
    }
    return files.getFileStatus(path).getLen();
  }

  private static long read(FileSystem files, Path path) throws IOException {
    byte[] piece = new byte[PIECE];
    long bytes = 0;
    try (FSDataInputStream in = files.open(path)) {
      for (int count = in.read(piece); count >= 0; count = in.read(piece)) {
        bytes += count;
      }
    }
    return bytes;
  }

  /** Fetches and decompresses all pages of a column, which is less than to decode its values. */
  private static long scan(Path path, Configuration configuration, String column)
      throws IOException {
    long values = 0;
    try (ParquetFileReader reader =
        ParquetFileReader.open(HadoopInputFile.fromPath(path, configuration))) {
      MessageType whole = reader.getFileMetaData().getSchema();
      MessageType one = new MessageType(whole.getName(), List.of(whole.getType(column)));
      reader.setRequestedSchema(one);
      ColumnDescriptor descriptor = one.getColumns().get(0);
      for (PageReadStore group = reader.readNextRowGroup();
          group != null;
          group = reader.readNextRowGroup()) {
        PageReader pages = group.getPageReader(descriptor);
        pages.readDictionaryPage();
        while (pages.readPage() != null) {}
        values += pages.getTotalValueCount();
      }
    }
    return values * Long.BYTES;
  }
}
