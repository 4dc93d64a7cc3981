"""A proxy in front of a real HDFS's web interfaces that does to chosen calls what networks do."""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator

_PAGE = b"Content-Type: text/html\r\nConnection: close\r\n\r\n<html><h1>%b</h1></html>"
_LOGIN = b"HTTP/1.1 200 OK\r\n" + _PAGE % b"Who are you?"
_EMPTY = b"Content-Length: 0\r\nConnection: close\r\n\r\n"
_INVENTED = {
    "html": b"HTTP/1.1 502 Bad Gateway\r\n" + _PAGE % b"proxy error",
    "login": _LOGIN,
    "blank": b"HTTP/1.1 200 OK\r\n" + _EMPTY,
    "another": b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n" + _EMPTY,
    "later": b"HTTP/1.1 504 Gateway Timeout\r\n" + _PAGE % b"no answer in time",
}
"""Answers that are not the name node's, which sees nothing of the call."""


class WebHdfsProxy:
    """Answers at `.address` for one name node, and for the data nodes that it redirects to.

    `.faults` maps a call, as `RENAME` or `CREATE@data` (the second step, at the data node), to what becomes of its
    next occurrences, one each: `refuse` (cut before it is sent on), `lose` (done, the answer lost), `cut` (half of what
    is sent arrives), `truncate` (half of the answer arrives), `unframed` (the answer has no length, and ends where
    `.cut_at` says, half-way at first), `twice` (sent on twice, the second answer arrives), `chunked` (it has none, and is whole), `hang` (no answer); not done, and answered by `html` (an
    error page), `login` (200 and a page), `blank` (200 and nothing), `another` (200 and nothing, as bytes: the answer to
    another RENAME), `later` (504; done when `.deliver()` is called); `done_login` (done, answered as `login`).
    `.calls` counts all calls.
    """

    def __init__(self, name_node: str) -> None:
        self.faults: dict[str, list[str]] = {}
        self.calls: Counter[str] = Counter()
        self.cut_at: Callable[[bytes], int] = lambda body: len(body) // 2
        self._name_node = name_node
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: set[socket.socket] = set()
        self._data_node = ""
        self._late: list[tuple[bytes, bytes]] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def deliver(self) -> int:
        """Lets the name node do what it got late; says how many calls."""
        late, self._late = self._late, []
        for head, body in late:
            self._unheard(self._name_node, head, body)
        return len(late)

    def _unheard(self, target: str, head: bytes, body: bytes) -> None:
        """Sends a request whose answer nobody gets."""
        ours, theirs = socket.socketpair()
        with ours, self._kept(theirs):
            ours.shutdown(socket.SHUT_WR)
            self._forward(theirs, target, head, body, "")

    def close(self) -> None:
        """Ends all connections."""
        _shut(self._listener, *self._open)
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    @contextlib.contextmanager
    def _kept(self, sock: socket.socket) -> Iterator[socket.socket]:
        self._open.add(sock)
        try:
            yield sock
        finally:
            self._open.discard(sock)
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # another thread may wait in recv: close would, too
            sock.close()

    def _answer(self, client: socket.socket) -> None:
        with self._kept(client), contextlib.suppress(OSError):
            head, body = _head(client)
            if not head:
                return
            operation = re.search(rb"[?&]op=(\w+)", head)
            at_data_node = b"namenoderpcaddress=" in head.split(b"\r\n")[0]
            call = (operation[1].decode() if operation else "?") + ("@data" if at_data_node else "")
            self.calls[call] += 1
            waiting = self.faults.get(call, [])
            fault = waiting.pop(0) if waiting else ""
            if fault == "later":
                self._late.append((head, body))
            if fault in _INVENTED:
                client.sendall(_INVENTED[fault])
            elif fault == "hang":
                threading.Event().wait(30)
            elif fault != "refuse":
                target = self._data_node if at_data_node else self._name_node
                if fault == "twice":
                    while call == "CREATE@data" and not body.endswith(b"0\r\n\r\n"):
                        body += client.recv(1 << 16)
                    self._unheard(target, head, body)
                self._forward(client, target, head, body, fault)

    def _forward(
        self, client: socket.socket, target: str, head: bytes, body: bytes, fault: str
    ) -> None:
        host, port = target.split(":")
        head = re.sub(rb"(?i)\r\n(connection|host): [^\r]*", b"", head)
        first, _, rest = head.partition(b"\r\n")
        head = first + b"\r\nHost: " + target.encode() + b"\r\nConnection: close\r\n" + rest
        with contextlib.ExitStack() as stack:
            server = stack.enter_context(self._kept(socket.create_connection((host, int(port)))))
            server.sendall(head)
            up = threading.Thread(
                target=self._upload, args=(client, server, body, fault == "cut"), daemon=True
            )
            stack.callback(up.join)
            stack.callback(_shut, client, server)
            up.start()
            reply = b"".join(iter(lambda: server.recv(1 << 16), b""))
            if fault in {"lose", "cut"}:
                return
            if fault == "done_login":
                client.sendall(_LOGIN)
                return
            redirect = re.search(rb"(?i)\r\nlocation: http://([^/]+)/", reply)
            if redirect:
                self._data_node = redirect[1].decode()
                reply = reply.replace(
                    b"//" + redirect[1] + b"/", b"//" + self.address.encode() + b"/", 1
                )
            begin = reply.find(b"\r\n\r\n") + 4
            head, body = reply[:begin], reply[begin:]
            if fault == "unframed":
                head = re.sub(rb"(?i)\r\ncontent-length: [^\r]*", b"", head)
                body = body[: self.cut_at(body)]
            elif fault == "chunked":
                head = re.sub(rb"(?i)content-length: [^\r]*", b"Transfer-Encoding: chunked", head)
                body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
            elif fault == "truncate":
                body = body[: len(body) // 2]
            client.sendall(head + body)

    @staticmethod
    def _upload(client: socket.socket, server: socket.socket, body: bytes, cut: bool) -> None:  # noqa: FBT001
        with contextlib.suppress(OSError):
            while True:
                server.sendall(body[: len(body) // 2] if cut else body)
                if cut and body:
                    # whoever waits for the server's answer learns it, too
                    server.shutdown(socket.SHUT_RDWR)
                    return
                body = client.recv(1 << 16)
                if not body:
                    return


def _shut(*connections: socket.socket) -> None:
    """End them for a thread that waits in `recv`.

    Whoever closes them first may have their numbers given to the next ones, of which the thread would then take
    the first bytes.
    """
    for each in connections:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _head(sock: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(1 << 16)
        if not piece:
            return b"", b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n", body
