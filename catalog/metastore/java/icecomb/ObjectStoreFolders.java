package icecomb;

import java.io.IOException;
import java.net.URI;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.util.Progressable;

/**
 * An object store as this metastore needs it: every folder exists and is empty.
 *
 * <p>A metastore checks the folders of databases and tables, and creates missing ones. An object
 * store has none: a file is written under its whole name. So the metastore needs neither a client
 * of the store nor permissions; operations that would need both are refused.
 */
public final class ObjectStoreFolders extends FileSystem {
  private static final FsPermission EVERYBODY = new FsPermission((short) 0777);

  private URI uri;
  private Path working;

  @Override
  public void initialize(URI name, Configuration conf) throws IOException {
    super.initialize(name, conf);
    setConf(conf);
    uri = URI.create(name.getScheme() + "://" + name.getAuthority());
    working = new Path(uri + "/");
  }

  @Override
  public URI getUri() {
    return uri;
  }

  @Override
  public Path getWorkingDirectory() {
    return working;
  }

  @Override
  public void setWorkingDirectory(Path folder) {
    working = folder;
  }

  @Override
  public FileStatus getFileStatus(Path path) {
    String owner = System.getProperty("user.name");
    return new FileStatus(0, true, 0, 0, 0, 0, EVERYBODY, owner, owner, makeQualified(path));
  }

  @Override
  public FileStatus[] listStatus(Path path) {
    return new FileStatus[0];
  }

  @Override
  public boolean mkdirs(Path path, FsPermission permission) {
    return true;
  }

  @Override
  public boolean delete(Path path, boolean recursive) throws IOException {
    throw refused("delete", path);
  }

  @Override
  public boolean rename(Path source, Path target) throws IOException {
    throw refused("rename", source);
  }

  @Override
  public FSDataInputStream open(Path path, int bufferSize) throws IOException {
    throw refused("read", path);
  }

  @Override
  public FSDataOutputStream create(
      Path path,
      FsPermission permission,
      boolean overwrite,
      int bufferSize,
      short replication,
      long blockSize,
      Progressable progress)
      throws IOException {
    throw refused("create", path);
  }

  @Override
  public FSDataOutputStream append(Path path, int bufferSize, Progressable progress)
      throws IOException {
    throw refused("append to", path);
  }

  private static IOException refused(String what, Path path) {
    return new IOException(
        "This metastore does not " + what + " " + path + ": its clients manage files");
  }
}
