"""Chunked upload of a file to a data node."""

from __future__ import annotations

import http.client
import selectors
import socket
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NoReturn

from icecomb.format.errors import IcecombError
from icecomb.format.input_limit import bounded_json
from icecomb.format.secret import one_line
from icecomb.format.storage.hdfs.failure import TRANSIENT, HdfsDataLostError, failure
from icecomb.format.storage.output_stream import Upload
from icecomb.format.storage.time_limit import SendLimit, TimedResponse

if TYPE_CHECKING:
    import ssl

_ANSWER_BYTES: Final = 1 << 20
_ABANDON_S: Final = 5.0
_LOOK_S: Final = 1.0
"""Seconds that a send may block before checking for an early response."""


class HdfsUpload(Upload):
    """An `Upload` over HTTP.

    Args:
        url: URL from the name node, as scheme, `host:port` and target.
        timeout_s: Timeout of every step, in seconds.

    Attributes:
        node: `host:port` of the data node's HTTP interface.
        is_lost: Whether it lost the data.
    """

    def __init__(
        self, url: tuple[str, str, str], location: str, timeout_s: float, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(location)
        scheme, self.node, target = url
        self.is_lost = False
        self._connection = (
            http.client.HTTPSConnection(self.node, timeout=timeout_s, context=tls)
            if scheme == "https"
            else http.client.HTTPConnection(self.node, timeout=timeout_s)
        )
        self._connection.response_class = TimedResponse
        self._timeout_s = timeout_s
        self._pace = SendLimit()
        self._events = selectors.DefaultSelector()
        try:
            self._connection.putrequest("PUT", target, skip_accept_encoding=True)
            self._connection.putheader("Content-Type", "application/octet-stream")
            self._connection.putheader("Transfer-Encoding", "chunked")
            self._connection.endheaders()
            # data sent after the data node has hung up is not a new request
            self._connection.auto_open = 0
        except (OSError, http.client.HTTPException, ValueError) as error:
            self._connection.close()
            self._events.close()
            raise self._broken(error) from None  # it may contain the URL with the token
        if scheme != "https":
            self._events.register(self._connection.sock, selectors.EVENT_WRITE)

    def write(self, data: Any, /) -> int:
        """Send a chunk; HdfsDataLostError if the data node is unavailable or too slow."""
        piece = memoryview(data).cast("B")
        if len(piece):
            try:
                for part in (b"%x\r\n" % len(piece), piece, b"\r\n"):
                    self._send(part)
            except (OSError, http.client.HTTPException) as error:
                self._explain(error)
            self.written += len(piece)
        return len(piece)

    def _send(self, part: bytes | memoryview) -> None:
        """Send a part of the body, unless the data node responds before all of it is sent.

        A data node that refuses a file stops reading, which the operating system may report to the
        sender only after a minute. Early responses are not detected over TLS.
        """
        sock = self._connection.sock
        if sock is None:
            self._connection.send(part)
            return
        if not self._events.get_map():
            self._pace.send(sock, part, self._connection.send)
            return
        rest = memoryview(part)
        while rest:
            begun = time.monotonic()
            sent = sock.send(rest) if self._events.select(_LOOK_S) else 0
            if not sent and _has_answered(sock):
                raise ConnectionAbortedError("it responded before everything was sent")
            rest = rest[sent:]
            self._pace.took(time.monotonic() - begun, sent, self._timeout_s)

    def finish(self) -> None:
        """End the file, and wait until it is stored; HdfsDataLostError if cut off."""
        try:
            self._connection.send(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException) as error:
            self._explain(error)
        self._check_reply()

    def _explain(self, error: Exception) -> NoReturn:
        """Raise the data node's own error if it sent one, else that of the connection.

        A data node that refuses a file responds and hangs up, so the next send fails first.
        """
        with suppress(HdfsDataLostError):
            self._check_reply()
        raise self._broken(error) from error

    def _check_reply(self) -> None:
        try:
            with self._connection.getresponse() as reply:
                body = reply.read(_ANSWER_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error) from error
        if reply.status != HTTPStatus.CREATED:
            try:
                remote = bounded_json(body)["RemoteException"]
                exception, message = remote["exception"], remote["message"]
            except (ValueError, KeyError, TypeError, RecursionError):
                exception, message = f"HTTP {reply.status}", reply.reason
            name = one_line(exception)
            refused = failure("create", self._location, name, message)
            if name in TRANSIENT or name.startswith("HTTP 5"):
                self.is_lost = True
                raise HdfsDataLostError(refused.message, hint=refused.hint, path=self._location)
            raise refused

    def abandon(self) -> None:
        """End an unwanted file, so that it can be deleted.

        The data node may create it even after the connection is closed, so its response is awaited
        for a few seconds.
        """
        if self._connection.sock is not None:
            self._connection.sock.settimeout(_ABANDON_S)
        with suppress(IcecombError):
            self.finish()

    def close(self) -> None:
        """Close the connection."""
        self._events.close()
        self._connection.close()
        super().close()

    def _broken(self, error: Exception) -> HdfsDataLostError:
        self.is_lost = True
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return HdfsDataLostError(
            f"Cannot write {self._location} at data node {one_line(self.node)}: {one_line(reason)}",
            hint="The data node may be down, or its name unknown here "
            "(dfs.datanode.hostname, dfs.client.use.datanode.hostname).",
            path=self._location,
        )


def _has_answered(sock: socket.socket) -> bool:
    """Return whether there is a response other than `100 Continue`, which is always sent."""
    timeout_s = sock.gettimeout()
    sock.settimeout(0)
    try:
        found = sock.recv(1 << 12, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    finally:
        sock.settimeout(timeout_s)
    _, end, rest = found.partition(b"\r\n\r\n")
    return not (found.startswith(b"HTTP/1.1 100 ") and (not end or not rest))
