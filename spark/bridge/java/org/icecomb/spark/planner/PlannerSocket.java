package org.icecomb.spark.planner;

import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;

/**
 * Lines to and from the planner. Waiting for one can be interrupted, which leaves the connection
 * open: a {@link java.net.Socket} ignores interrupts, and a channel would be closed by them.
 */
final class PlannerSocket implements Closeable {

  /** A timeout without a limit. */
  static final long FOREVER = 0;

  private static final int BUFFER_BYTES = 1 << 16;

  private final SocketChannel channel;
  private final Selector selector;
  private final SelectionKey key;
  private final ByteBuffer in = ByteBuffer.allocate(BUFFER_BYTES).flip();

  /**
   * Connects to a port of the loopback interface.
   *
   * @throws InterruptedWaitException if the thread is interrupted, as with each other method
   */
  PlannerSocket(int port, long timeoutMs) throws IOException {
    channel = SocketChannel.open();
    try {
      channel.configureBlocking(false);
      channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
      selector = Selector.open();
    } catch (IOException e) {
      channel.close();
      throw e;
    }
    try {
      key = channel.register(selector, 0);
      long deadline = deadline(timeoutMs);
      channel.connect(
          new InetSocketAddress(InetAddress.getByAddress(new byte[] {127, 0, 0, 1}), port));
      while (!channel.finishConnect()) {
        await(SelectionKey.OP_CONNECT, deadline);
      }
    } catch (IOException e) {
      close();
      throw e;
    }
  }

  void write(byte[] bytes) throws IOException {
    ByteBuffer out = ByteBuffer.wrap(bytes);
    while (out.hasRemaining()) {
      if (channel.write(out) == 0) {
        await(SelectionKey.OP_WRITE, FOREVER);
      }
    }
  }

  /** The bytes before the next line feed. */
  byte[] readLine(long timeoutMs) throws IOException {
    return readLine(timeoutMs, Integer.MAX_VALUE);
  }

  /** The bytes before the next line feed, of whom is not trusted yet. */
  byte[] readLine(long timeoutMs, int longest) throws IOException {
    long deadline = deadline(timeoutMs);
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    while (true) {
      int from = in.position();
      for (int at = from; at < in.limit(); at++) {
        if (in.get(at) == '\n') {
          line.write(in.array(), from, at - from);
          in.position(at + 1);
          return line.toByteArray();
        }
      }
      line.write(in.array(), from, in.remaining());
      if (line.size() > longest) {
        throw new IOException("a line is too long");
      }
      in.clear();
      int count = channel.read(in);
      in.flip();
      if (count < 0) {
        throw new IOException("the connection was closed");
      }
      if (count == 0) {
        await(SelectionKey.OP_READ, deadline);
      }
    }
  }

  /** Closes this side, which cancels a pending request. */
  void endAsking() throws IOException {
    channel.shutdownOutput();
  }

  private static long deadline(long timeoutMs) {
    return timeoutMs == FOREVER ? FOREVER : System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
  }

  private void await(int operation, long deadline) throws IOException {
    long left = deadline == FOREVER ? 0 : TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
    if (deadline != FOREVER && left <= 0) {
      throw new SocketTimeoutException("the planner was silent for too long");
    }
    key.interestOps(operation);
    // An interrupted thread does not wait, and stays interrupted.
    selector.select(left);
    selector.selectedKeys().clear();
    if (Thread.currentThread().isInterrupted()) {
      throw new InterruptedWaitException();
    }
  }

  @Override
  public void close() {
    try {
      channel.close();
      if (selector != null) {
        selector.close();
      }
    } catch (IOException e) {
      // Ignored: the connection is not used again.
    }
  }
}
