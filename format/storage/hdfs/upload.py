"""The body of a file on its way to a data node, sent piece by piece."""

from __future__ import annotations

import http.client
import json
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
        try:
            self._connection.putrequest("PUT", target, skip_accept_encoding=True)
            self._connection.putheader("Content-Type", "application/octet-stream")
            self._connection.putheader("Transfer-Encoding", "chunked")
            self._connection.endheaders()
            # what comes after the data node has hung up is no new request
            self._connection.auto_open = 0
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise self._broken(error) from error

    def write(self, data: Any, /) -> int:
        """Send a piece.

        Raises:
            HdfsDataLostError: the data node is gone, or too slow.
            FileIOError: it refuses the file.
        """
        piece = memoryview(data).cast("B")
        if len(piece):
            try:
                self._connection.send(b"%x\r\n" % len(piece))
                self._connection.send(piece)
                self._connection.send(b"\r\n")
            except (OSError, http.client.HTTPException) as error:
                self._explain(error)
            self.written += len(piece)
        return len(piece)

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
