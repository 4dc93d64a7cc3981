package icecomb;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Predicate;
import java.util.stream.Stream;

/** Finds whose process has the other end of a connection on this machine, as Linux lists them in /proc/net. */
final class Peers {
  private static final List<Path> TABLES = List.of(Path.of("/proc/net/tcp"), Path.of("/proc/net/tcp6"));
  private static final int STATE = 3;
  private static final int UID = 7;
  private static final int INODE = 9;

  private static final String LISTENS = "0A";

  /** A busy table may be read with a gap. */
  private static final int TRIES = 3;

  /** Who has the listening socket, if the system lists that. */
  private volatile String owner;

  private final Queue<Socket> asked = new ConcurrentLinkedQueue<>();
  private final Map<Socket, Boolean> judged = new HashMap<>();

  /**
   * Returns whether another user, root aside, has the other end, or nobody any more: such an end is listed as root's.
   * Where the system lists no ends, or not their users, this is false.
   */
  boolean isOfAnother(Socket plug) throws IOException {
    asked.add(plug);
    synchronized (judged) {
      if (!judged.containsKey(plug)) {
        // a look takes the system milliseconds: it is for all that are asked about meanwhile
        Set<Socket> all = new HashSet<>(Set.of(plug));
        for (Socket each = asked.poll(); each != null; each = asked.poll()) {
          all.add(each);
        }
        Set<Socket> others = ofOthers(all);
        all.forEach(each -> judged.put(each, others.contains(each)));
      }
      return judged.remove(plug);
    }
  }

  private Set<Socket> ofOthers(Set<Socket> plugs) throws IOException {
    Set<String> servers = new HashSet<>();
    Map<String, Socket> ends = new HashMap<>();
    for (Socket plug : plugs) {
      List<String> here = shown(plug.getLocalAddress(), plug.getLocalPort());
      List<String> there = shown(plug.getInetAddress(), plug.getPort());
      servers.addAll(here);
      for (int family = 0; family < here.size(); family++) {
        ends.put(there.get(family) + " " + here.get(family), plug);
      }
    }
    Set<Socket> others = new HashSet<>(plugs);
    for (int attempt = 0; attempt < TRIES; attempt++) {
      for (Path table : TABLES) {
        if (!Files.isReadable(table)) {
          continue;
        }
        try (Stream<String> lines = Files.lines(table, StandardCharsets.US_ASCII)) {
          Predicate<String> counts = line -> servers.stream().anyMatch(line::contains);
          for (String line : (Iterable<String>) lines.filter(counts)::iterator) {
            String[] parts = line.strip().split("\\s+");
            boolean exists = !parts[INODE].equals("0");
            Socket plug = ends.get(parts[1] + " " + parts[2]);
            if (exists && parts[STATE].equals(LISTENS) && servers.contains(parts[1])) {
              owner = parts[UID];
            } else if (exists && plug != null && List.of("0", String.valueOf(owner)).contains(parts[UID])) {
              others.remove(plug);
            }
            if (others.isEmpty()) {
              return others;
            }
          }
        }
      }
    }
    return owner == null ? Set.of() : others;
  }

  /** Shows an address as the tables do: as one of IPv4, and as one of IPv6 that stands for it. */
  private static List<String> shown(InetAddress address, int port) {
    ByteOrder order = ByteOrder.nativeOrder();
    int number = ByteBuffer.wrap(address.getAddress()).order(order).getInt();
    String text = String.format("%08X:%04X", number, port);
    String mark = order == ByteOrder.LITTLE_ENDIAN ? "FFFF0000" : "0000FFFF";
    return List.of(text, "0".repeat(16) + mark + text);
  }
}
