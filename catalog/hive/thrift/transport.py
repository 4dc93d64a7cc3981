"""A buffered socket under Thrift that records what it has sent and keeps the reply's bytes."""

from __future__ import annotations

import select
import socket
import time
from io import BytesIO
from typing import Final, Protocol

from thrift.transport.TTransport import CReadableTransport, TTransportBase, TTransportException

_CHUNK: Final = 1 << 16
_FIRST_LARGEST: Final = 1 << 20
"""The most bytes of a reply before the login is done."""


class Seal(Protocol):
    """The protection of an authenticated connection's frames: none, signing, or encryption."""

    def wrap(self, data: bytes) -> bytes:
        """Return the protected form of ``data``."""

    def unwrap(self, data: bytes) -> bytes:
        """Return the data that ``data`` protects."""


class Transport(TTransportBase, CReadableTransport):  # type: ignore[misc]
    """A connected socket, plain or TLS.

    Attributes:
        timeout_s: Seconds that sending a request may take, and receiving the whole reply.
        sent: Whether anything was sent since it was last set to False.
        largest: The most bytes that a reply may have.
        seal: The protection after a SASL negotiation: everything is sent in frames then.
    """

    def __init__(self, plug: socket.socket, timeout_s: float) -> None:
        self._socket = plug
        self.timeout_s = timeout_s
        self._deadline = 0.0
        self._read = BytesIO()
        self._write = bytearray()
        self._chunks: list[bytes] = []
        self._received = 0
        self.largest = _FIRST_LARGEST
        self.sent = False
        self.seal: Seal | None = None

    @property
    def reply(self) -> bytes:
        """Every byte received since the last flush: the whole last reply."""
        return b"".join(self._chunks)

    def rewind(self) -> None:
        """Go back to the first byte of the last reply."""
        self._read = BytesIO(self.reply)

    def is_readable(self) -> bool:
        """Return whether bytes, or the end of the stream, can be read."""
        if not self.isOpen():
            return True
        poll = select.poll() if hasattr(select, "poll") else None
        if poll is None:
            return bool(select.select([self._socket], [], [], 0)[0])
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def isOpen(self) -> bool:  # noqa: N802 - thrift's name
        """Return whether `close` was not called."""
        return self._socket.fileno() >= 0

    def open(self) -> None:
        """Do nothing: the socket is open from the start."""

    def close(self) -> None:
        """Close the socket, and discard what came."""
        self._socket.close()
        self._chunks, self._read = [], BytesIO()

    def read(self, sz: int) -> bytes:
        """Read at least one byte and at most ``sz``."""
        data = self._read.read(sz)
        if data or sz == 0:
            return data
        self._read = BytesIO(self._receive())
        return self._read.read(sz)

    def write(self, buf: bytes) -> None:
        """Collect bytes for `flush`."""
        self._write += buf

    def flush(self) -> None:
        """Send the collected bytes: one call."""
        out, self._write = bytes(self._write), bytearray()
        self._chunks, self._received = [], 0
        if self.seal is not None:
            sealed = self.seal.wrap(out)
            out = len(sealed).to_bytes(4, "big") + sealed
        self.sent = True
        self.send_raw(out)

    def send_raw(self, data: bytes) -> None:
        """Send bytes unchanged."""
        try:
            self._socket.settimeout(self.timeout_s)
            self._socket.sendall(data)
            self._deadline = time.monotonic() + self.timeout_s
        except OSError as error:
            raise TTransportException(TTransportException.UNKNOWN, str(error)) from error

    def receive_raw(self, size: int) -> bytes:
        """Receive exactly ``size`` bytes, unchanged."""
        data = bytearray()
        while len(data) < size:
            data += self._chunk(size - len(data))
        return bytes(data)

    @property
    def cstringio_buf(self) -> BytesIO:
        """The received bytes that were not read, for Thrift's decoder in C."""
        return self._read

    def cstringio_refill(self, partialread: bytes, reqlen: int) -> BytesIO:
        """Receive the bytes that Thrift's decoder in C still needs."""
        pieces, count = [partialread], len(partialread)
        self._check(self._received - count + reqlen)
        while count < reqlen:
            pieces.append(self._receive())
            count += len(pieces[-1])
        self._read = BytesIO(b"".join(pieces))
        return self._read

    def _check(self, size: int) -> None:
        """Check the size of a reply, also one that was only stated."""
        if size > self.largest:
            raise TTransportException(
                TTransportException.SIZE_LIMIT,
                f"its reply is larger than {self.largest} bytes "
                "(hive.thrift.client.max.message.size)",
            )

    def _receive(self) -> bytes:
        if self.seal is None:
            data = self._chunk(_CHUNK)
        else:
            size = int.from_bytes(self.receive_raw(4), "big")
            self._check(self._received + size)
            data = self.seal.unwrap(self.receive_raw(size))
        self._received += len(data)
        self._check(self._received)
        self._chunks.append(data)
        return data

    def _chunk(self, size: int) -> bytes:
        # A timeout of the socket would apply to each byte.
        rest = self._deadline - time.monotonic()
        if rest <= 0:
            raise _late()
        try:
            self._socket.settimeout(rest)
            chunk = self._socket.recv(min(size, _CHUNK))
        except TimeoutError as error:
            raise _late() from error
        except OSError as error:
            raise TTransportException(TTransportException.UNKNOWN, str(error)) from error
        if not chunk:
            raise TTransportException(TTransportException.END_OF_FILE, "the server hung up")
        return chunk


def _late() -> TTransportException:
    return TTransportException(TTransportException.TIMED_OUT, "no reply in time")
