package icecomb;

import java.io.IOException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.NameCallback;
import javax.security.auth.callback.PasswordCallback;
import javax.security.sasl.AuthorizeCallback;
import javax.security.sasl.Sasl;
import javax.security.sasl.SaslException;
import javax.security.sasl.SaslServer;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore;
import org.apache.hadoop.hive.thrift.TUGIContainingTransport;
import org.apache.hadoop.security.token.Token;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TConfiguration;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.protocol.TProtocolUtil;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;
import org.apache.thrift.transport.TTransportException;
import org.apache.thrift.transport.TTransportFactory;
import org.apache.thrift.transport.layered.TFramedTransport;

/**
 * Admits a connection once it has shown the owner's token; until then no call reaches the metastore.
 *
 * <p>Every user of a machine can reach a port on its loopback address, and a metastore deletes folders with the
 * rights of its starter. There are two ways in: SASL with the mechanism DIGEST-MD5, as Hive's clients speak it for
 * a delegation token (they need {@code hive.metastore.sasl.enabled} and a token file); and, for clients that know no
 * SASL, {@code set_ugi} as the first call, with the token's password as a group.
 *
 * <p>Hive's clients in Java send a login to whoever has the address: one at the address of a metastore that ended may
 * relay it here. So who shows the token must also be a process of the owner, or of root, where {@link Peers} can tell.
 *
 * <p>A stranger gets little time and memory, and leaves nothing in the log. Of too many connections that are not
 * admitted the oldest is closed, so that the owner, who is admitted in milliseconds, gets in.
 */
final class Admission {
  /** The most connections that wait for admission at once. */
  static final int MOST_WAITING = 256;

  /** Time that each has: the owner's clients may come in crowds; 1,000 strangers before them pass in two seconds. */
  private static final long FAIR_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private static final int DEEPEST = 64;
  private static final int LONGEST_MESSAGE = 1 << 14;
  private static final int LONGEST_FRAME = 256 << 20;
  private static final long NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final byte START = 1;
  private static final byte OK = 2;
  private static final byte BAD = 3;
  private static final byte COMPLETE = 5;
  private static final String MECHANISM = "DIGEST-MD5";

  private final String user;
  private final char[] password;
  private final byte[] secret;
  private final String refusal;
  private final Peers peers = new Peers();
  private final ThreadLocal<TTransport> admitted = new ThreadLocal<>();

  /** What waits for admission, the oldest first, by the time of its beginning. */
  private final Map<Socket, Long> waiting = new LinkedHashMap<>();

  /**
   * @param token the owner's token
   * @param warehouse the folder that is served, for messages
   */
  Admission(Token<?> token, String warehouse) {
    TProtocolUtil.setMaxSkipDepth(DEEPEST);
    this.secret = token.getPassword();
    this.user = Base64.getEncoder().encodeToString(token.getIdentifier());
    this.password = Base64.getEncoder().encodeToString(secret).toCharArray();
    this.refusal =
        String.format(
            "the metastore of %s belongs to %s: it requires the token in its folder .metastore",
            warehouse, System.getProperty("user.name"));
  }

  /** Makes room for a connection that is not admitted yet. */
  void expect(Socket plug) throws TTransportException {
    synchronized (waiting) {
      while (waiting.size() >= MOST_WAITING) {
        Map.Entry<Socket, Long> oldest = waiting.entrySet().iterator().next();
        long left = oldest.getValue() + FAIR_NANOS - System.nanoTime();
        try {
          if (left > 0) {
            TimeUnit.NANOSECONDS.timedWait(waiting, left);
          } else {
            dismiss(oldest.getKey());
          }
        } catch (InterruptedException e) {
          throw new TTransportException(e);
        }
      }
      waiting.put(plug, System.nanoTime());
    }
  }

  private void dismiss(Socket plug) {
    waiting.remove(plug);
    try {
      plug.close();
    } catch (IOException e) {
      // it is gone
    }
  }

  /** Closes what waits for admission: the server ends, for which each has to. */
  void close() {
    synchronized (waiting) {
      List.copyOf(waiting.keySet()).forEach(this::dismiss);
    }
  }

  /** Admits a connection, or throws. Thrift asks for the two directions of one connection, one after the other. */
  TTransportFactory input() {
    return new TTransportFactory() {
      @Override
      public TTransport getTransport(TTransport connection) throws TTransportException {
        TTransport found = admit((TSocket) connection);
        admitted.set(found);
        return found;
      }
    };
  }

  /** Returns what {@link #input} has admitted on this thread. */
  TTransportFactory output() {
    return new TTransportFactory() {
      @Override
      public TTransport getTransport(TTransport connection) {
        TTransport found = admitted.get();
        admitted.remove();
        return found;
      }
    };
  }

  private TTransport admit(TSocket connection) throws TTransportException {
    Door door = new Door(connection);
    Socket plug = connection.getSocket();
    try {
      byte first = door.first();
      TTransport found = connection;
      if (first == START) {
        authenticate(door);
        found = new TFramedTransport(connection, LONGEST_FRAME);
      } else {
        introduce(door);
      }
      if (peers.isOfAnother(plug)) {
        throw new TTransportException("another user relayed the login");
      }
      connection.setTimeout(0);
      return new TUGIContainingTransport(found) {
        @Override
        public Socket getSocket() {
          return plug;
        }
      };
    } catch (TException | IOException | RuntimeException | StackOverflowError e) {
      // Thrift's server ignores this kind of exception: a stranger must not fill the log.
      throw new TTransportException(TTransportException.END_OF_FILE, "not admitted", e);
    } finally {
      synchronized (waiting) {
        waiting.remove(plug);
        waiting.notifyAll();
      }
    }
  }

  /** Runs the server's side of Thrift's SASL negotiation. */
  private void authenticate(Door door) throws TException, SaslException {
    if (!MECHANISM.equals(new String(message(door, START), StandardCharsets.UTF_8))) {
      send(door, BAD, (refusal + ", by " + MECHANISM).getBytes(StandardCharsets.UTF_8));
      throw new SaslException("another mechanism");
    }
    // Clients of icecomb compare the realm with the address: a login that is relayed here is not valid.
    Map<String, String> properties =
        Map.of(Sasl.QOP, "auth", "com.sun.security.sasl.digest.realm", door.address());
    SaslServer server =
        Sasl.createSaslServer(MECHANISM, null, "default", properties, this::answer);
    while (!server.isComplete()) {
      byte[] response = message(door, OK);
      byte[] challenge;
      try {
        challenge = server.evaluateResponse(response);
      } catch (SaslException e) {
        send(door, BAD, refusal.getBytes(StandardCharsets.UTF_8));
        throw e;
      }
      send(door, server.isComplete() ? COMPLETE : OK, challenge == null ? new byte[0] : challenge);
    }
  }

  private void answer(Callback[] callbacks) {
    for (Callback callback : callbacks) {
      if (callback instanceof NameCallback) {
        ((NameCallback) callback).setName(user);
      } else if (callback instanceof PasswordCallback) {
        ((PasswordCallback) callback).setPassword(password);
      } else if (callback instanceof AuthorizeCallback) {
        AuthorizeCallback who = (AuthorizeCallback) callback;
        boolean owner = user.equals(who.getAuthenticationID()) && user.equals(who.getAuthorizationID());
        who.setAuthorized(owner);
        who.setAuthorizedID(owner ? user : null);
      }
    }
  }

  private static byte[] message(Door door, byte status) throws TTransportException {
    byte[] header = new byte[5];
    door.readAll(header, 0, header.length);
    int size = ByteBuffer.wrap(header, 1, 4).getInt();
    if (header[0] != status || size < 0 || size > LONGEST_MESSAGE) {
      throw new TTransportException("not SASL");
    }
    byte[] body = new byte[size];
    door.readAll(body, 0, size);
    return body;
  }

  private static void send(Door door, byte status, byte[] body) throws TTransportException {
    byte[] message = ByteBuffer.allocate(5 + body.length).put(status).putInt(body.length).put(body).array();
    door.write(message, 0, message.length);
    door.flush();
  }

  /** Begins a conversation without SASL: the first call must be {@code set_ugi} with the secret. */
  private void introduce(Door door) throws TException {
    TProtocol protocol = new TBinaryProtocol(door, LONGEST_MESSAGE, LONGEST_MESSAGE, true, true);
    TMessage call = protocol.readMessageBegin();
    ThriftHiveMetastore.set_ugi_args arguments = new ThriftHiveMetastore.set_ugi_args();
    // The arguments of other calls are skipped, except fields of the same number and type.
    arguments.read(protocol);
    protocol.readMessageEnd();
    if (!call.name.equals("set_ugi")) {
      TApplicationException error =
          new TApplicationException(TApplicationException.INTERNAL_ERROR, refusal);
      protocol.writeMessageBegin(new TMessage(call.name, TMessageType.EXCEPTION, call.seqid));
      error.write(protocol);
    } else {
      protocol.writeMessageBegin(new TMessage(call.name, TMessageType.REPLY, call.seqid));
      ThriftHiveMetastore.set_ugi_result result = new ThriftHiveMetastore.set_ugi_result();
      if (knows(arguments.getGroup_names())) {
        result.setSuccess(List.of(String.valueOf(arguments.getUser_name())));
        result.write(protocol);
        protocol.writeMessageEnd();
        door.flush();
        return;
      }
      result.setO1(new MetaException(refusal));
      result.write(protocol);
    }
    protocol.writeMessageEnd();
    door.flush();
    throw new TTransportException("no secret");
  }

  private boolean knows(List<String> groups) {
    // PyIceberg sends the text of its property ugi letter by letter.
    String said = groups == null ? "" : String.join("", groups);
    return MessageDigest.isEqual(said.getBytes(StandardCharsets.UTF_8), secret);
  }

  /** A connection that is not admitted yet: it has ten seconds for a few short messages. */
  private static final class Door extends TTransport {
    private final TSocket connection;
    private final long end = System.nanoTime() + NANOS;
    private int left = 4 * LONGEST_MESSAGE;
    private int peeked = -1;

    Door(TSocket connection) {
      this.connection = connection;
    }

    String address() {
      Socket plug = connection.getSocket();
      return plug.getLocalAddress().getHostAddress() + ":" + plug.getLocalPort();
    }

    byte first() throws TTransportException {
      byte[] first = new byte[1];
      readAll(first, 0, 1);
      peeked = first[0] & 0xff;
      return first[0];
    }

    @Override
    public int read(byte[] buffer, int offset, int size) throws TTransportException {
      if (size > 0 && peeked >= 0) {
        buffer[offset] = (byte) peeked;
        peeked = -1;
        return 1;
      }
      long remaining = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
      if (remaining <= 0 || size > left) {
        throw new TTransportException(TTransportException.TIMED_OUT, "too slow, or too long");
      }
      connection.setTimeout((int) remaining);
      int count = connection.read(buffer, offset, size);
      left -= count;
      return count;
    }

    @Override
    public void write(byte[] buffer, int offset, int size) throws TTransportException {
      connection.write(buffer, offset, size);
    }

    @Override
    public void flush() throws TTransportException {
      connection.flush();
    }

    @Override
    public boolean isOpen() {
      return connection.isOpen();
    }

    @Override
    public void open() {}

    @Override
    public void close() {
      connection.close();
    }

    @Override
    public TConfiguration getConfiguration() {
      return connection.getConfiguration();
    }

    @Override
    public void updateKnownMessageSize(long size) throws TTransportException {
      connection.updateKnownMessageSize(size);
    }

    @Override
    public void checkReadBytesAvailable(long size) throws TTransportException {
      connection.checkReadBytesAvailable(size);
    }
  }
}
