package icecomb;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
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

  /**
   * Returns whether another user, root aside, has the other end, or nobody any more: such an end is listed as root's.
   * Where the system lists no ends, or not their users, this is false.
   */
  boolean isOfAnother(Socket plug) throws IOException {
    List<String> here = shown(plug.getLocalAddress(), plug.getLocalPort());
    List<String> there = shown(plug.getInetAddress(), plug.getPort());
    for (int attempt = 0; attempt < TRIES; attempt++) {
      for (Path table : TABLES) {
        if (!Files.isReadable(table)) {
          continue;
        }
        try (Stream<String> lines = Files.lines(table, StandardCharsets.US_ASCII)) {
          for (String line : (Iterable<String>) lines.filter(each -> each.contains(here.get(0)))::iterator) {
            String[] parts = line.strip().split("\\s+");
            boolean exists = !parts[INODE].equals("0");
            if (exists && parts[STATE].equals(LISTENS) && here.contains(parts[1])) {
              owner = parts[UID];
            } else if (owner != null && there.contains(parts[1]) && here.contains(parts[2])) {
              return !exists || !List.of("0", owner).contains(parts[UID]);
            }
          }
        }
      }
    }
    return owner != null;
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
