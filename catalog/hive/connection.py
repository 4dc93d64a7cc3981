"""One Thrift connection to one metastore: a socket with time-outs that knows what it has sent."""

from __future__ import annotations

import os
import select
import socket
from io import BytesIO
from typing import Any, Final
from urllib.parse import urlsplit

from hmsclient.genthrift.hive_metastore import ThriftHiveMetastore
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.Thrift import TApplicationException, TMessageType
from thrift.transport.TTransport import CReadableTransport, TTransportBase, TTransportException

from icecomb.catalog.hive.failure import UnreachableError
from icecomb.format.errors import ConfigurationError

DEFAULT_PORT: Final = 9083
_CHUNK: Final = 1 << 16


class Connection:
    """A connection and the generated client on it.

    Args:
        uri: As ``thrift://host:port``.
        connect_timeout_s: For the TCP connection.
        timeout_s: For each reply.

    Raises:
        UnreachableError: nobody listens there, or the name does not resolve.
    """

    def __init__(self, uri: str, connect_timeout_s: float, timeout_s: float) -> None:
        self.uri = uri
        self.pid = os.getpid()
        host, port = endpoint(uri)
        try:
            plug = socket.create_connection((host, port), timeout=connect_timeout_s)
        except OSError as error:
            raise UnreachableError(
                f"the metastore {uri} cannot be reached: {error.strerror or error}",
                hint="check the address, and that the metastore runs",
                uri=uri,
            ) from error
        plug.settimeout(timeout_s)
        plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self.transport = _Transport(plug)
        self.protocol = TBinaryProtocolAccelerated(self.transport)
        self.thrift = ThriftHiveMetastore.Client(self.protocol)

    def is_stale(self) -> bool:
        """Whether the server has closed it (or said something nobody asked for).

        One that a forked process inherited is, too: its replies belong to the parent.
        """
        return self.pid != os.getpid() or self.transport.is_readable()

    def close(self) -> None:
        """Closes the socket; the server gives its thread free."""
        self.transport.close()

    def __del__(self) -> None:
        # Absent when the constructor failed.
        if transport := getattr(self, "transport", None):
            transport.close()

    def call_with_bytes(self, method: str, arguments: bytes) -> None:
        """Sends a call with encoded arguments; the generated client reads the reply."""
        self.protocol.writeMessageBegin(method, TMessageType.CALL, 0)
        self.transport.write(arguments)
        self.protocol.writeMessageEnd()
        self.transport.flush()
        getattr(self.thrift, f"recv_{method}")()


class _Transport(TTransportBase, CReadableTransport):  # type: ignore[misc]
    """A buffered socket that keeps the bytes of the last reply and knows whether a call left."""

    def __init__(self, plug: socket.socket) -> None:
        self._socket = plug
        self._read = BytesIO()
        self._write = bytearray()
        self._chunks: list[bytes] = []
        self.sent = False

    @property
    def reply(self) -> bytes:
        """Every byte received since the last flush: the whole last reply."""
        return b"".join(self._chunks)

    def is_readable(self) -> bool:
        poll = select.poll() if hasattr(select, "poll") else None
        if poll is None:
            return bool(select.select([self._socket], [], [], 0)[0])
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def isOpen(self) -> bool:  # noqa: N802 - thrift's name
        return self._socket.fileno() >= 0

    def open(self) -> None:
        """It is open from the start."""

    def close(self) -> None:
        self._socket.close()

    def read(self, sz: int) -> bytes:
        data = self._read.read(sz)
        if data or sz == 0:
            return data
        self._read = BytesIO(self._receive())
        return self._read.read(sz)

    def write(self, buf: bytes) -> None:
        self._write += buf

    def flush(self) -> None:
        out, self._write = self._write, bytearray()
        self._chunks = []
        self.sent = True
        try:
            self._socket.sendall(out)
        except OSError as error:
            raise TTransportException(TTransportException.UNKNOWN, str(error)) from error

    @property
    def cstringio_buf(self) -> BytesIO:
        return self._read

    def cstringio_refill(self, partialread: bytes, reqlen: int) -> BytesIO:
        data = bytearray(partialread)
        while len(data) < reqlen:
            data += self._receive()
        self._read = BytesIO(bytes(data))
        return self._read

    def _receive(self) -> bytes:
        try:
            chunk = self._socket.recv(_CHUNK)
        except TimeoutError as error:
            raise TTransportException(TTransportException.TIMED_OUT, "no reply in time") from error
        except OSError as error:
            raise TTransportException(TTransportException.UNKNOWN, str(error)) from error
        if not chunk:
            raise TTransportException(TTransportException.END_OF_FILE, "the server hung up")
        self._chunks.append(chunk)
        return chunk


def endpoint(uri: str) -> tuple[str, int]:
    """Host and port of ``thrift://host:port`` (the port may be left out).

    Raises:
        ConfigurationError: it is no such address.
    """
    try:
        parts = urlsplit(uri if "://" in uri else f"thrift://{uri}")
        host, port = parts.hostname, parts.port or DEFAULT_PORT
    except ValueError:
        host, port = None, 0
    if not host or parts.scheme != "thrift" or parts.path.strip("/"):
        raise ConfigurationError(
            f"{uri!r} is not the address of a Hive metastore",
            hint="write it as thrift://host:9083; separate several with commas",
        )
    return host, port


def is_missing_call(error: Any) -> bool:
    """Whether the server says that it does not have this call."""
    return (
        isinstance(error, TApplicationException)
        and error.type == TApplicationException.UNKNOWN_METHOD
    )
