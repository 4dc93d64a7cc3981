package icecomb;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.SecureRandom;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.IHMSHandler;
import org.apache.hadoop.hive.metastore.RawStore;
import org.apache.hadoop.hive.metastore.TUGIBasedProcessor;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.hadoop.hive.metastore.txn.TxnStore;
import org.apache.hadoop.hive.metastore.txn.TxnUtils;
import org.apache.hadoop.security.Credentials;
import org.apache.hadoop.security.token.Token;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.server.ServerContext;
import org.apache.thrift.server.TServerEventHandler;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;

/**
 * A Hive metastore 2.3 for one warehouse folder, on the loopback address and for its owner only.
 *
 * <p>HiveMetaStore.main would listen on every address, never expire a dead client's lock and run
 * forever. This class builds the same handler and server around it: lock tables prepared, a reaper
 * of timed-out locks, a free port announced in a state file, an end after a time without clients.
 *
 * <p>{@link Admission} keeps others out. So it is only the owner whose calls the handler obeys
 * (get_partitions_by_expr deserializes objects by Kryo).
 *
 * <p>Usage: {@code EmbeddedMetastore prepare} fills the Derby database named by hive-site.xml and
 * ends; {@code EmbeddedMetastore serve <state file> <name> <idle seconds> <token file>} serves.
 */
public final class EmbeddedMetastore {
  /** Location of the database "default" in a prepared Derby folder, replaced when it is served. */
  private static final String UNPLACED = "file:/icecomb-unplaced-warehouse";

  private static final String TABLES_EXIST = "X0Y32";

  /** Below the ports that operating systems hand out (Linux: from 32768, others: from 49152). */
  private static final int FIRST_PORT = 20000;

  private static final int LAST_PORT = 32767;

  /** A longer queue than strangers have in a moment: who finds it full tries again a second later. */
  private static final int BACKLOG = 1000;

  private final HiveConf conf;
  private final Path state;
  private final String name;
  private final Path tokenFile;
  private final long idleNanos;
  private final AtomicInteger connections = new AtomicInteger();
  private final AtomicLong lastUsed = new AtomicLong(System.nanoTime());
  private final AtomicBoolean ended = new AtomicBoolean();

  private EmbeddedMetastore(
      HiveConf conf, Path state, String name, long idleSeconds, Path tokenFile) {
    this.conf = conf;
    this.state = state;
    this.name = name;
    this.tokenFile = tokenFile;
    this.idleNanos = TimeUnit.SECONDS.toNanos(idleSeconds);
  }

  public static void main(String[] args) throws Exception {
    HiveConf conf = new HiveConf();
    prepareLockTables(conf);
    if (args.length == 1 && args[0].equals("prepare")) {
      conf.setVar(HiveConf.ConfVars.METASTOREWAREHOUSE, UNPLACED);
      newHandler(conf, "prepare").get_all_databases();
      shutDownDerby();
      System.exit(0);
    }
    if (args.length != 5 || !args[0].equals("serve")) {
      System.err.println(
          "usage: EmbeddedMetastore prepare | serve STATE_FILE NAME IDLE_SECONDS TOKEN_FILE");
      System.exit(2);
    }
    placeDefaultDatabase(conf);
    new EmbeddedMetastore(
            conf, Path.of(args[1]), args[2], Long.parseLong(args[3]), Path.of(args[4]))
        .serve();
  }

  private static void prepareLockTables(HiveConf conf) throws Exception {
    try {
      TxnDbUtil.prepDb(conf);
    } catch (SQLException e) {
      if (!TABLES_EXIST.equals(e.getSQLState())) {
        throw e;
      }
    }
  }

  private static void placeDefaultDatabase(HiveConf conf) throws Exception {
    Class.forName(conf.getVar(HiveConf.ConfVars.METASTORE_CONNECTION_DRIVER));
    String sql = "UPDATE \"DBS\" SET \"DB_LOCATION_URI\" = ? WHERE \"DB_LOCATION_URI\" = ?";
    String url = conf.getVar(HiveConf.ConfVars.METASTORECONNECTURLKEY);
    try (Connection derby = DriverManager.getConnection(url, "APP", "mine");
        PreparedStatement update = derby.prepareStatement(sql)) {
      update.setString(1, conf.getVar(HiveConf.ConfVars.METASTOREWAREHOUSE));
      update.setString(2, UNPLACED);
      update.executeUpdate();
    } catch (SQLException e) {
      // 42X05: a Derby folder without Hive's tables; the handler creates them with the right location
      if (!"42X05".equals(e.getSQLState())) {
        throw e;
      }
    }
  }

  private static IHMSHandler newHandler(HiveConf conf, String name) throws Exception {
    return HiveMetaStore.newRetryingHMSHandler(
        new HiveMetaStore.HMSHandler(name, conf, false), conf, false);
  }

  private void serve() throws Exception {
    // The handler's name is the answer of fb303 getName, by which clients recognize the server of the state file.
    IHMSHandler handler = newHandler(conf, name);
    Admission admission =
        new Admission(onlyToken(), conf.getVar(HiveConf.ConfVars.METASTOREWAREHOUSE));
    TServerSocket socket = listen(admission);
    TThreadPoolServer server =
        new TThreadPoolServer(
            new TThreadPoolServer.Args(socket)
                .processor(new TUGIBasedProcessor<>(handler))
                .inputTransportFactory(admission.input())
                .outputTransportFactory(admission.output())
                .protocolFactory(new TBinaryProtocol.Factory())
                .inputProtocolFactory(new TBinaryProtocol.Factory(true, true, 256L << 20, -1))
                .minWorkerThreads(4)
                .maxWorkerThreads(1000 + Admission.MOST_WAITING));
    server.setServerEventHandler(new Connections());
    ScheduledExecutorService clock =
        Executors.newScheduledThreadPool(
            2,
            task -> {
              Thread thread = new Thread(task, "icecomb-clock");
              thread.setDaemon(true);
              return thread;
            });
    long reap = conf.getTimeVar(HiveConf.ConfVars.HIVE_TIMEDOUT_TXN_REAPER_INTERVAL, TimeUnit.MILLISECONDS);
    clock.scheduleWithFixedDelay(this::reapTimedOutLocks, reap, reap, TimeUnit.MILLISECONDS);
    if (idleNanos > 0) {
      clock.scheduleWithFixedDelay(() -> endWhenIdle(server, admission), 1, 1, TimeUnit.SECONDS);
    }
    Runtime.getRuntime().addShutdownHook(new Thread(this::end));
    announce(socket.getServerSocket().getLocalPort());
    server.serve();
    end();
    System.exit(0);
  }

  /** Listens on a port that no other program is given when it asks for any free one. */
  private static TServerSocket listen(Admission admission) throws Exception {
    InetAddress loopback = InetAddress.getByName("127.0.0.1");
    for (int port : new SecureRandom().ints(20, FIRST_PORT, LAST_PORT + 1).toArray()) {
      try {
        return listen(admission, new InetSocketAddress(loopback, port));
      } catch (TTransportException e) {
        // another program has it
      }
    }
    return listen(admission, new InetSocketAddress(loopback, 0));
  }

  private static TServerSocket listen(Admission admission, InetSocketAddress address)
      throws TTransportException {
    return new TServerSocket(
        new TServerSocket.ServerSocketTransportArgs().bindAddr(address).backlog(BACKLOG)) {
      @Override
      public TSocket accept() throws TTransportException {
        TSocket accepted = super.accept();
        admission.expect(accepted.getSocket());
        return accepted;
      }
    };
  }

  private Token<?> onlyToken() throws IOException {
    return Credentials.readTokenStorageFile(tokenFile.toFile(), conf)
        .getAllTokens()
        .iterator()
        .next();
  }

  private void reapTimedOutLocks() {
    try {
      TxnStore locks = TxnUtils.getTxnStore(conf);
      locks.performTimeOuts();
    } catch (RuntimeException e) {
      HiveMetaStore.LOG.warn("timed-out locks could not be released", e);
    }
  }

  private void endWhenIdle(TThreadPoolServer server, Admission admission) {
    if (connections.get() == 0 && System.nanoTime() - lastUsed.get() > idleNanos) {
      // The name is removed first: a new client then finds no state file and starts another server.
      removeState();
      server.stop();
      // it ends with the last connection, and a next one needs its database
      admission.close();
    }
  }

  private void announce(int port) throws IOException {
    String json =
        String.format(
            "{\"pid\": %d, \"port\": %d, \"name\": \"%s\"}%n",
            ProcessHandle.current().pid(), port, name);
    Path draft = state.resolveSibling(state.getFileName() + "." + name);
    Files.write(draft, json.getBytes(StandardCharsets.UTF_8));
    Files.move(draft, state, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
  }

  private void removeState() {
    try {
      if (Files.exists(state) && Files.readString(state).contains(name)) {
        Files.delete(state);
      }
    } catch (IOException e) {
      HiveMetaStore.LOG.warn("the state file could not be removed", e);
    }
  }

  private void end() {
    if (ended.compareAndSet(false, true)) {
      removeState();
      shutDownDerby();
    }
  }

  private static void shutDownDerby() {
    try {
      DriverManager.getConnection("jdbc:derby:;shutdown=true");
    } catch (SQLException e) {
      // Derby reports a clean shutdown as an exception (XJ015).
    }
  }

  /** Counts the admitted connections, and releases each thread's database connection when its client leaves. */
  private final class Connections implements TServerEventHandler {
    @Override
    public void preServe() {}

    @Override
    public ServerContext createContext(TProtocol input, TProtocol output) {
      connections.incrementAndGet();
      return null;
    }

    @Override
    public void deleteContext(ServerContext context, TProtocol input, TProtocol output) {
      RawStore store = HiveMetaStore.HMSHandler.getRawStore();
      if (store != null) {
        store.shutdown();
        HiveMetaStore.HMSHandler.removeRawStore();
      }
      lastUsed.set(System.nanoTime());
      connections.decrementAndGet();
    }

    @Override
    public void processContext(ServerContext context, TTransport input, TTransport output) {}
  }
}
