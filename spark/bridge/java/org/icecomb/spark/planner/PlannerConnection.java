package org.icecomb.spark.planner;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;

/** One socket to the planner, used by one request at a time. */
final class PlannerConnection implements Closeable {

  private static final int BUFFER_BYTES = 1 << 16;

  private final PlannerProcess process;
  private final Socket socket;
  private final InputStream in;
  private final OutputStream out;

  /**
   * @param socket a connection on which the planner has sent its greeting, and nothing after it
   */
  PlannerConnection(PlannerProcess process, Socket socket) throws IOException {
    this.process = process;
    this.socket = socket;
    this.in = new BufferedInputStream(socket.getInputStream(), BUFFER_BYTES);
    this.out = new BufferedOutputStream(socket.getOutputStream(), BUFFER_BYTES);
  }

  /** The process at its other end. */
  PlannerProcess process() {
    return process;
  }

  /** Sends a request and waits for its answer, however long that takes. */
  ObjectNode exchange(ObjectNode request) throws IOException {
    Pages.write(request, "params", out);
    out.flush();
    return Pages.read("result", () -> Json.parse(readLine(in)));
  }

  /** The bytes before the next line feed. */
  static byte[] readLine(InputStream in) throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int next = in.read(); next != '\n'; next = in.read()) {
      if (next < 0) {
        throw new IOException("the connection was closed");
      }
      line.write(next);
    }
    return line.toByteArray();
  }

  @Override
  public void close() {
    try {
      socket.close();
    } catch (IOException e) {
      // Nothing is lost: the connection is not used again.
    }
  }
}
