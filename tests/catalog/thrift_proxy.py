"""A proxy in front of a real metastore that loses requests or replies of named calls."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import Counter


class ThriftProxy:
    """Listens on a port of its own and forwards to ``port``.

    ``fail(method, how)`` arms one fault for the next such call: ``request`` = the connection breaks and the
    server never sees the call, ``reply`` = the server does it and the answer is lost.
    ``delay(method, seconds)`` holds the next such call back before the server sees it.
    """

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._faults: dict[str, str] = {}
        self._delays: dict[str, float] = {}
        self._before: dict[str, object] = {}
        self.calls: Counter[str] = Counter()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self._server.getsockname()[1]}"
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def fail(self, method: str, how: str) -> None:
        assert how in {"request", "reply"}
        self._faults[method] = how

    def delay(self, method: str, seconds: float) -> None:
        self._delays[method] = seconds

    def before(self, method: str, action: object) -> None:
        """Runs ``action()`` once, when the next such call has arrived and before the server sees it."""
        self._before[method] = action

    def close(self) -> None:
        for one in (self._server, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # a thread in accept() would keep the port open
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            upstream = socket.create_connection(self._target)
            self._open += [client, upstream]
            threading.Thread(target=self._serve, args=(client, upstream), daemon=True).start()

    def _serve(self, client: socket.socket, upstream: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ)
            selector.register(upstream, selectors.EVENT_READ)
            fault = None
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                    if not data:
                        raise OSError
                    if key.fileobj is client:
                        if data[:4] == b"\x80\x01\x00\x01":
                            size = int.from_bytes(data[4:8], "big")
                            method = data[8 : 8 + size].decode()
                            self.calls[method] += 1
                            fault = self._faults.pop(method, None)
                            if action := self._before.pop(method, None):
                                action()  # type: ignore[operator]
                            time.sleep(self._delays.pop(method, 0))
                        if fault == "request":
                            raise OSError
                        upstream.sendall(data)
                    else:
                        if fault == "reply":
                            raise OSError
                        client.sendall(data)
        client.close()
        upstream.close()
