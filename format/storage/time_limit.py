"""HTTP requests and responses with a time limit for the whole: a socket's timeout is per call."""

from __future__ import annotations

import http.client
import io
import re
import socket
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import urllib3

_HEAD: Final = 1 << 18
"""The most bytes of lines before a body, between its parts and after it: a server may go on
answering `100 Continue`, or adding headers, without an end."""
_BESIDE: Final = 16
"""How many such bytes each byte of the body allows anew: one that is a chunk has five."""
_INTERIM: Final = 16
_LEAST_S: Final = 0.001
"""No timeout of a socket: 0 would not wait at all."""
_LENGTH: Final = re.compile(r"[ \t]*[0-9]{1,19}[ \t]*")
_PIECE: Final = 1 << 20
"""Bytes after which the time limit starts again: long files may take longer than the limit."""


class SendLimit:
    """The time that a server may take for what is sent to it: its timeout for each MiB.

    Only the time counts in which it is waited for, however many calls send the bytes.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._left = _PIECE
        self._waited_s = 0.0

    def took(self, seconds: float, count: int, timeout_s: float) -> None:
        """Note for how long it was waited, and what it took; TimeoutError if it is too slow."""
        self._waited_s += seconds
        self._left -= count
        if self._left <= 0:
            self._begin()
        elif self._waited_s > timeout_s:
            raise TimeoutError("timed out")

    def send(self, sock: socket.socket, data: Any, send: Callable[[Any], object]) -> None:
        """Send bytes by a function that waits for the socket no longer than its timeout."""
        timeout_s, rest = sock.gettimeout(), memoryview(data).cast("B")
        if timeout_s is None:
            send(data)
            return
        try:
            while rest:
                piece, rest = rest[: self._left], rest[self._left :]
                sock.settimeout(max(timeout_s - self._waited_s, _LEAST_S))
                begun = time.monotonic()
                send(piece)
                self.took(time.monotonic() - begun, len(piece), timeout_s)
        finally:
            sock.settimeout(timeout_s)


class TimedResponse(http.client.HTTPResponse):
    """A response whose head and body together take no longer than the socket's timeout.

    Few interim ones, such as `100 Continue` or `102 Processing`, may come before it: none is taken
    for the response, which would then be that to the next request. HTTPException is raised if it
    states the end of its body otherwise than by one length or in chunks: a body whose end is that
    of the connection may be cut anywhere.
    """

    _interim = 0

    def __init__(self, sock: socket.socket, *options: Any, **others: Any) -> None:
        super().__init__(sock, *options, **others)
        self.fp = _Bounded(_Timed(sock, self.fp.detach()))

    def _read_status(self) -> tuple[str, int, str]:
        while True:
            self._interim += 1
            if self._interim > _INTERIM:
                raise http.client.HTTPException("more interim responses than any server sends")
            found: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
            # the library passes over 100 only
            if not HTTPStatus.SWITCHING_PROTOCOLS <= found[1] < HTTPStatus.OK:
                return found
            while self.fp.readline().strip():
                pass

    def begin(self) -> None:
        super().begin()
        lengths = self.headers.get_all("Content-Length", [])
        codings = self.headers.get_all("Transfer-Encoding", [])
        if not all(_LENGTH.fullmatch(each) for each in lengths) or len({*lengths}) > 1:
            raise http.client.HTTPException(f"its Content-Length is {', '.join(lengths)!r}")
        if [each.strip(" \t").lower() for each in codings] not in ([], ["chunked"]):
            raise http.client.HTTPException(f"its Transfer-Encoding is {', '.join(codings)!r}")


class _Bounded(io.BufferedReader):
    """A reader of heads and bodies by whose limit a head, or what is between chunks, ends."""

    _left = _HEAD

    def readline(self, size: int | None = -1, /) -> bytes:
        most = self._left + 1 if size is None or size < 0 else min(size, self._left + 1)
        line = super().readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise http.client.HTTPException(f"more than {_HEAD} bytes came outside of the body")
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            raise http.client.HTTPException("its body has no end")
        found = super().read(size)
        self._allow(len(found))
        return found

    def readinto(self, buffer: Any, /) -> int:
        count = super().readinto(buffer)
        self._allow(count)
        return count

    def _allow(self, count: int) -> None:
        self._left = min(_HEAD, self._left + _BESIDE * count)


class _Timed(io.RawIOBase):
    def __init__(self, sock: socket.socket, raw: io.RawIOBase) -> None:
        self._sock = sock
        self._raw = raw
        self._timeout_s = sock.gettimeout()
        self._begin()

    def _begin(self) -> None:
        self._left = _PIECE
        self._deadline = time.monotonic() + (self._timeout_s or 0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        if self._timeout_s is not None:
            rest = self._deadline - time.monotonic()
            if rest <= 0:
                raise TimeoutError("the response did not arrive in time")
            self._sock.settimeout(rest)
        count: int | None = self._raw.readinto(buffer)
        self._left -= count or 0
        if self._left <= 0:
            self._begin()
        return count

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()


class PacedConnection(http.client.HTTPConnection):
    """A connection whose requests are sent within a `SendLimit`."""

    _pace = SendLimit()

    def putrequest(self, *request: Any, **options: Any) -> None:
        """Begin a request, and its time."""
        self._pace = SendLimit()
        super().putrequest(*request, **options)

    def send(self, data: Any) -> None:
        """Send a part of a request; TimeoutError if the server is too slow."""
        if self.sock is not None and isinstance(data, (bytes, bytearray, memoryview)):
            self._pace.send(self.sock, data, super().send)
        else:
            super().send(data)


def _any_peer(*_: object) -> None:
    """Allow requests to every host."""


def timed_pools(
    check_peer: Callable[[str, int, socket.socket], None] = _any_peer,
) -> dict[str, type[urllib3.HTTPConnectionPool]]:
    """Return classes of connection pools with `TimedResponse` responses, by scheme.

    Args:
        check_peer: Function that raises `ConnectionError` unless a request to a host and port may
            be sent by a connection.
    """
    from urllib3.connection import HTTPConnection, HTTPSConnection
    from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

    class Plain(PacedConnection, HTTPConnection):
        response_class = TimedResponse

        def send(self, data: Any) -> None:
            if self.sock is None and self.auto_open:
                self.connect()
            if self.sock is not None:
                check_peer(self.host, self.port, self.sock)
            super().send(data)

    class Secure(Plain, HTTPSConnection):
        pass

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class SecurePool(HTTPSConnectionPool):
        ConnectionCls = Secure

    return {"http": PlainPool, "https": SecurePool}
