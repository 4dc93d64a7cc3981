"""The body of a file on its way to a data node, sent piece by piece."""

from __future__ import annotations

import http.client
import json
import selectors
import socket
import time
from contextlib import suppress
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NoReturn

from icecomb.format.errors import IcecombError
from icecomb.format.storage.hdfs.failure import TRANSIENT, HdfsDataLostError, failure
from icecomb.format.storage.hdfs.time_limit import TimedResponse
from icecomb.format.storage.output_stream import Upload

if TYPE_CHECKING:
    import ssl

_ABANDON_S: Final = 5.0
_LOOK_S: Final = 1.0
"""How long nothing can be sent before it is looked whether there is an answer."""


class HdfsUpload(Upload):
    """One over HTTP.

    Args:
        url: Where the name node sent us, by scheme, `host:port` and target.
        location: The file, for messages.
        timeout_s: For every step.
        tls: For https.
    """

    def __init__(
        self, url: tuple[str, str, str], location: str, timeout_s: float, tls: ssl.SSLContext | None
    ) -> None:
        super().__init__(location)
        scheme, self._host, target = url
        self._connection = (
            http.client.HTTPSConnection(self._host, timeout=timeout_s, context=tls)
            if scheme == "https"
            else http.client.HTTPConnection(self._host, timeout=timeout_s)
        )
        self._connection.response_class = TimedResponse
        self._timeout_s = timeout_s
        self._events = selectors.DefaultSelector()
        try:
            self._connection.putrequest("PUT", target, skip_accept_encoding=True)
            self._connection.putheader("Content-Type", "application/octet-stream")
            self._connection.putheader("Transfer-Encoding", "chunked")
            self._connection.endheaders()
            # what comes after the data node has hung up is no new request
            self._connection.auto_open = 0
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            self._events.close()
            raise self._broken(error) from error
        if scheme != "https":
            self._events.register(self._connection.sock, selectors.EVENT_WRITE)

    def write(self, data: Any, /) -> int:
        """Send a piece.

        Raises:
            HdfsDataLostError: the data node is gone, or too slow.
            FileIOError: it refuses the file.
        """
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
        """Send a part of the body, unless the data node answers before all of it is sent.

        One that refuses a file hangs up and takes nothing any more, which the system may say to the
        sender only after a minute. What comes over TLS is not seen before it is read.
        """
        sock = self._connection.sock
        if sock is None or not self._events.get_map():
            self._connection.send(part)
            return
        rest, deadline = memoryview(part), time.monotonic() + self._timeout_s
        while rest:
            if self._events.select(_LOOK_S):
                rest = rest[sock.send(rest) :]
                deadline = time.monotonic() + self._timeout_s
            elif _has_answered(sock):
                raise ConnectionAbortedError("it answered before all was sent")
            elif time.monotonic() > deadline:
                raise TimeoutError("timed out")

    def finish(self) -> None:
        """Say that this was all, and wait until the data node has stored it.

        Raises:
            HdfsDataLostError: the connection broke.
            FileIOError: it refused.
        """
        try:
            self._connection.send(b"0\r\n\r\n")
        except (OSError, http.client.HTTPException) as error:
            self._explain(error)
        self._check_reply()

    def _explain(self, error: Exception) -> NoReturn:
        """A data node that refuses answers and hangs up, which our next piece notices first."""
        with suppress(HdfsDataLostError):
            self._check_reply()
        raise self._broken(error) from error

    def _check_reply(self) -> None:
        try:
            reply = self._connection.getresponse()
            body = reply.read()
        except (OSError, http.client.HTTPException) as error:
            raise self._broken(error) from error
        if reply.status != HTTPStatus.CREATED:
            try:
                remote = json.loads(body)["RemoteException"]
                exception, message = remote["exception"], remote["message"]
            except (ValueError, KeyError, TypeError):
                exception, message = f"HTTP {reply.status}", reply.reason
            refused = failure("create", self._location, exception, message)
            if exception in TRANSIENT or exception.startswith("HTTP 5"):
                raise HdfsDataLostError(refused.message, hint=refused.hint, path=self._location)
            raise refused

    def abandon(self) -> None:
        """End a file that is not wanted, so that it can be deleted.

        The data node makes it whenever it comes to that, even after we have gone: so its answer is
        waited for, but not for long.
        """
        if self._connection.sock is not None:
            self._connection.sock.settimeout(_ABANDON_S)
        with suppress(IcecombError):
            self.finish()

    def close(self) -> None:
        """End the connection."""
        self._events.close()
        self._connection.close()
        super().close()

    def _broken(self, error: Exception) -> HdfsDataLostError:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return HdfsDataLostError(
            f"Cannot write {self._location} at data node {self._host}: {reason}",
            hint="the data node may be down, or its name unknown here "
            "(dfs.datanode.hostname, dfs.client.use.datanode.hostname)",
            path=self._location,
        )


def _has_answered(sock: socket.socket) -> bool:
    """Whether there is more to read than leave to go on, which data nodes give to everybody."""
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
