"""A proxy in front of a real metastore that loses, cuts, delays and forges requests and replies."""

from __future__ import annotations

import contextlib
import select
import selectors
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable

from icecomb.catalog import metastore
from icecomb.catalog.hive.thrift import wire

_CALL = b"\x80\x01\x00\x01"
_REPLY = b"\x80\x01\x00\x02"
_EXCEPTION = b"\x80\x01\x00\x03"
_INTERNAL_ERROR = 6
_OF_ANOTHER = _REPLY + struct.pack(">i", 6) + b"unlock" + struct.pack(">i", 7) + b"\x00"
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER such that closing sends RST."""
_SEEN = struct.pack("ii", 1, 30)
"""SO_LINGER such that closing waits until the other end knows of it: who sends then sees it first."""
_WITH_THE_END = getattr(socket, "MSG_MORE", 0)
"""Sends bytes in one packet with the end that follows, so that nobody acts between the two."""

FAULTS = {
    "unsent": "the metastore is not reached: the call is not sent",
    "request": "the connection breaks, and the server never sees the call",
    "reset": "the connection is reset in the middle of the request",
    "late": "the connection breaks, and the server gets the call when `deliver` is called",
    "reply": "the server does it, and the connection breaks before the answer",
    "torn": "the server does it, and the connection is reset in the middle of the answer",
    "refused": "the answer is an internal error, and the server never sees the call",
    "betrayed": "the server does it, and the answer is an internal error",
}
OTHERS = {
    "mistaken": "the server does it, and the answer is that to another call",
    "forged": "the answer is that to another call, and the server never sees the call",
}
AWAY = "away"
"""As ``late``, and no connection is accepted any more until ``begin()``."""


class ThriftProxy:
    """Listens on a port of its own and forwards to ``port``.

    ``fail(method, how)`` arms one fault for the next such call, or one after ``passing`` others,
    ``fail_at(position, how)`` for the
    call of that position since ``begin()``; see `FAULTS`, and for the first also `OTHERS`. ``delay(method, seconds)`` holds the next
    such call back before the server sees it; `before` and `after` do something else meanwhile.

    Attributes:
        target: The port that new connections are forwarded to.
        calls: How often each call arrived.
        sequence: The calls since ``begin()``, without those that introduce a new connection.
        injected: How many faults were injected, by method and kind.
    """

    def __init__(self, port: int) -> None:
        self.target = port
        self.calls: Counter[str] = Counter()
        self.sequence: list[str] = []
        self.injected: Counter[tuple[str, str]] = Counter()
        self._faults: dict[str, list[str | None]] = {}
        self._at: tuple[int, str] | None = None
        self._delays: dict[str, float] = {}
        self._before: dict[str, Callable[[], object]] = {}
        self._after: dict[str, Callable[[], object]] = {}
        self._late: list[bytes] = []
        self._refusing = 0
        self._away = False
        self._guard = threading.RLock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self.uri = f"thrift://127.0.0.1:{self._server.getsockname()[1]}"
        self._open: dict[threading.Thread, tuple[socket.socket, socket.socket]] = {}
        threading.Thread(target=self._accept, daemon=True).start()

    def fail(self, method: str, how: str, *, passing: int = 0, times: int = 1) -> None:
        assert how in {*FAULTS, *OTHERS} - {"unsent"}
        self._faults[method] = [*[None] * passing, *[how] * times]

    def begin(self) -> None:
        """The next call has position 0; what was armed by position is disarmed."""
        with self._guard:
            self.sequence = []
            self._at = None
            self._refusing = 0
            self._away = False

    def fail_at(self, position: int, how: str) -> None:
        """Arms a fault after ``begin()``."""
        assert how in FAULTS or how == AWAY
        with self._guard:
            self._at = (position, how)
            if how != "unsent" or position > 0:
                return
            self._vanish("the first call")
        self.hang_up()

    def delay(self, method: str, seconds: float) -> None:
        self._delays[method] = seconds

    def before(self, method: str, action: Callable[[], object]) -> None:
        """Runs ``action()`` once, when the next such call has arrived and before the server sees it."""
        self._before[method] = action

    def after(self, method: str, action: Callable[[], object]) -> None:
        """Runs ``action()`` once, when the server has done the next such call and before its client knows."""
        self._after[method] = action

    def deliver(self) -> int:
        """Lets the server do what it got late; says how many calls."""
        with self._guard:
            late, self._late = self._late, []
        for request in late:
            with self._connect() as server:
                server.settimeout(120)
                server.sendall(request)
                server.recv(1 << 16)
        return len(late)

    def hang_up(self) -> None:
        """Closes every connection but the one that this thread serves; new ones are accepted.

        Whoever was connected sees it from then on.
        """
        me = threading.current_thread()
        with self._guard:
            found = {thread: ends for thread, ends in self._open.items() if thread is not me}
        for thread, ends in found.items():
            for one in ends:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            thread.join()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # a thread in accept() would keep it open
        self._server.close()
        self.hang_up()

    def _connect(self) -> socket.socket:
        """A connection to the server; an embedded one is shown its token."""
        server = socket.create_connection(("127.0.0.1", self.target))
        if embedded := metastore.find("127.0.0.1", self.target):
            user, groups = wire.string_field(1, "proxy"), [embedded.secret]
            call = _CALL + struct.pack(">i", 7) + b"set_ugi" + bytes(4)
            try:
                server.sendall(call + user + wire.string_list_field(2, groups) + b"\0")
                if server.recv(1 << 16)[:4] != _REPLY:
                    raise ConnectionRefusedError
            except OSError:
                server.close()
                raise
        return server

    def _vanish(self, method: str) -> None:
        self._at = None
        self._refusing = 1
        self.injected[method, "unsent"] += 1

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _SEEN)
            with self._guard:
                refuse = self._away or self._refusing > 0
                self._refusing = max(0, self._refusing - 1)
            try:
                if refuse:
                    raise ConnectionRefusedError
                upstream = self._connect()
            except OSError:
                client.close()
                continue
            serving = threading.Thread(target=self._serve, args=(client, upstream), daemon=True)
            with self._guard:
                if self._away or self._server.fileno() < 0:
                    client.close()
                    upstream.close()
                else:
                    self._open[serving] = client, upstream
                    serving.start()

    def _serve(self, client: socket.socket, upstream: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError, ValueError):
                self._pass_on(client, upstream)
        finally:
            client.close()
            upstream.close()
            with self._guard:
                del self._open[threading.current_thread()]

    def _pass_on(self, client: socket.socket, upstream: socket.socket) -> None:
        method, fault = "", None
        with selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ)
            selector.register(upstream, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                    if not data:
                        raise OSError
                    if key.fileobj is client:
                        if data[:4] == _CALL:
                            method, fault = self._arrived(data)
                        self._forward(fault, data, client, upstream)
                    else:
                        if action := self._after.pop(method, None):
                            action()
                        fault = self._answer(fault, data, client, upstream)

    def _arrived(self, data: bytes) -> tuple[str, str | None]:
        size = int.from_bytes(data[4:8], "big")
        method = data[8 : 8 + size].decode()
        with self._guard:
            self.calls[method] += 1
            planned = self._faults.get(method)
            fault = planned.pop(0) if planned else None
            if method != "set_ugi":
                if self._at is not None and self._at[0] == len(self.sequence):
                    fault, self._at = self._at[1], None
                self.sequence.append(method)
            if fault is not None:
                self.injected[method, fault] += 1
        if action := self._before.pop(method, None):
            action()
        time.sleep(self._delays.pop(method, 0))
        return method, fault

    def _forward(
        self, fault: str | None, data: bytes, client: socket.socket, upstream: socket.socket
    ) -> None:
        if fault in {"late", AWAY}:
            with self._guard:
                self._late.append(data)
                self._away = fault == AWAY
            if fault == AWAY:
                self.hang_up()
        if fault in {"request", "late", "unsent", AWAY}:
            raise OSError
        if fault == "reset":
            upstream.sendall(data[: len(data) // 2])
            _reset(upstream)
            _reset(client)
            raise OSError
        if fault in {"refused", "forged"}:
            if data[:4] == _CALL:
                client.sendall(_internal_error(data) if fault == "refused" else _OF_ANOTHER)
        else:
            upstream.sendall(data)

    def _answer(
        self, fault: str | None, data: bytes, client: socket.socket, upstream: socket.socket
    ) -> str | None:
        if fault == "reply":
            raise OSError
        if fault == "torn":
            data += _rest(upstream)
            client.sendall(data[: len(data) // 2])
            _reset(client)
            raise OSError
        if fault in {"betrayed", "mistaken"}:
            _rest(upstream)
            client.sendall(_internal_error(data) if fault == "betrayed" else _OF_ANOTHER)
            return "muted"
        if fault == "muted":
            return fault
        with self._guard:
            if self._at is not None and self._at[1] == "unsent":
                vanish = self._at[0] == len(self.sequence) > 0
            else:
                vanish = False
        if not vanish:
            client.sendall(data)
            return fault
        data += _rest(upstream)
        with self._guard:
            self._vanish(f"the call after {self.sequence[-1]}")
        self.hang_up()
        client.sendall(data, _WITH_THE_END)
        raise OSError


def _rest(upstream: socket.socket) -> bytes:
    """What still comes of a reply, until the server is quiet."""
    data = b""
    while select.select([upstream], [], [], 0.02)[0]:
        chunk = upstream.recv(1 << 20)
        if not chunk:
            break
        data += chunk
    return data


def _internal_error(message: bytes) -> bytes:
    """What libthrift answers when a handler fails in a way that nobody foresaw.

    Args:
        message: A call, or the reply to it.
    """
    end = wire.reply_body(message)
    head = message[4:end]
    text = b"Internal error processing " + head[4:-4]
    said = b"\x0b" + struct.pack(">hi", 1, len(text)) + text
    return _EXCEPTION + head + said + b"\x08" + struct.pack(">hi", 2, _INTERNAL_ERROR) + b"\x00"


def _reset(one: socket.socket) -> None:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    one.close()
