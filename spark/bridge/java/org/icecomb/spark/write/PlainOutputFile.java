package org.icecomb.spark.write;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.util.HadoopStreams;
import org.apache.parquet.io.OutputFile;
import org.apache.parquet.io.PositionOutputStream;

/** A new file without Hadoop's checksum file beside it, which no table would clean up. */
final class PlainOutputFile implements OutputFile {

  private final Path path;
  private final FileSystem system;
  private PositionOutputStream stream;

  PlainOutputFile(Path path, Configuration conf) throws IOException {
    this.path = path;
    FileSystem found = path.getFileSystem(conf);
    this.system = found instanceof ChecksumFileSystem checked ? checked.getRawFileSystem() : found;
  }

  @Override
  public PositionOutputStream create(long blockSizeHint) throws IOException {
    stream = HadoopStreams.wrap(system.create(path, false));
    return stream;
  }

  @Override
  public PositionOutputStream createOrOverwrite(long blockSizeHint) throws IOException {
    throw new UnsupportedOperationException("Data files are never overwritten");
  }

  Path path() {
    return path;
  }

  /** The file system of the file. */
  FileSystem system() {
    return system;
  }

  /** The size of the closed file in bytes, according to the file system. */
  long length() throws IOException {
    return system.getFileStatus(path).getLen();
  }

  @Override
  public boolean supportsBlockSize() {
    return false;
  }

  @Override
  public long defaultBlockSize() {
    return 0;
  }

  @Override
  public String getPath() {
    return path.toString();
  }
}
