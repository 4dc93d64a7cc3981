"""A relay before a metastore with SASL that keeps sealed messages, and sends them again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue

_COMPLETE = 5


class SaslProxy:
    """Relays one connection after the other; its messages are bytes with their lengths.

    Attributes:
        port: Where it listens on 127.0.0.1.
        sent: The sealed messages of the client, of all connections.
        answers: Those of the server.
        instead: What the client gets in place of the next answer.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._plug = socket.create_server(("127.0.0.1", 0))
        self.port = self._plug.getsockname()[1]
        self.sent: list[bytes] = []
        self.answers: list[bytes] = []
        self.instead: bytes | None = None
        self._kept_back: SimpleQueue[bytes] | None = None
        self._server: socket.socket | None = None
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Ends it."""
        self._plug.close()

    def repeat(self, message: bytes) -> bytes | None:
        """Send a message of the client once more; return the answer, None if there is none."""
        assert self._server is not None
        self._kept_back = SimpleQueue()
        with suppress(OSError):
            self._server.sendall(message)
            return self._kept_back.get(timeout=60) or None
        return None

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._plug.accept()
                self._kept_back = None
                self._server = socket.create_connection(("127.0.0.1", self._target))
                sealed = threading.Event()
                for relay in (self._up, self._down):
                    threading.Thread(
                        target=relay, args=(client, self._server, sealed), daemon=True
                    ).start()

    @contextmanager
    def _hanging_up(self, *plugs: socket.socket) -> Iterator[None]:
        """Ends both connections when one does."""
        try:
            with suppress(OSError, EOFError):
                yield
        finally:
            for plug in plugs:
                with suppress(OSError):
                    plug.shutdown(socket.SHUT_RDWR)
                plug.close()
            if self._kept_back is not None:
                self._kept_back.put(b"")

    def _up(self, client: socket.socket, server: socket.socket, sealed: threading.Event) -> None:
        with self._hanging_up(client, server):
            while True:
                first = _exactly(client, 1)
                if not sealed.is_set():
                    server.sendall(first + _message(client))
                    continue
                self.sent.append(_message(client, first))
                server.sendall(self.sent[-1])

    def _down(self, client: socket.socket, server: socket.socket, sealed: threading.Event) -> None:
        with self._hanging_up(client, server):
            while not sealed.is_set():
                status = _exactly(server, 1)
                body = _message(server)
                if status[0] == _COMPLETE:
                    sealed.set()
                client.sendall(status + body)
            while True:
                answer = _message(server)
                if self._kept_back is not None:
                    self._kept_back.put(answer)
                    continue
                self.answers.append(answer)
                answer, self.instead = self.instead or answer, None
                client.sendall(answer)


def _message(source: socket.socket, begin: bytes = b"") -> bytes:
    head = begin + _exactly(source, 4 - len(begin))
    return head + _exactly(source, int.from_bytes(head, "big"))


def _exactly(source: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = source.recv(size - len(found))
        if not piece:
            raise EOFError
        found += piece
    return found
