"""JSON lines over a loopback socket: a token first, then question and answer in turn.

Not the child's own stdin and stdout: anything a library prints would break the protocol there.
"""

from __future__ import annotations

import hmac
import json
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any, Final

from icecomb.format.errors import IcecombError

PROTOCOL: Final = 1
"""The version of the protocol, part of the first line: bridge and planner must agree."""

Handler = Callable[[dict[str, Any]], Any]

_log = logging.getLogger(__name__)
_MAX_TOKEN: Final = 1024


class Server:
    """Answers the methods in `handlers` to whoever knows `token`.

    Args:
        handlers: What each method does with its params; the result must be JSON.
        token: The first line of every connection. Other users of the machine can reach the port,
            too.
    """

    def __init__(self, handlers: Mapping[str, Handler], token: str) -> None:
        self._handlers = handlers
        self._token = token.encode()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    @property
    def port(self) -> int:
        """The loopback port."""
        port: int = self._listener.getsockname()[1]
        return port

    def start(self) -> None:
        """Accepts connections in a thread that does not keep the process alive."""
        threading.Thread(target=self._accept, name="planner-accept", daemon=True).start()

    def close(self) -> None:
        """Takes no further connection."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as requests:
            try:
                if not hmac.compare_digest(
                    requests.readline(_MAX_TOKEN).rstrip(b"\n"), self._token
                ):
                    return
                self._converse(requests, connection)
            except OSError:
                # the bridge went away in the middle: it asks again on a new connection if it
                # still cares
                _log.debug("connection lost", exc_info=True)

    def _converse(self, requests: IO[bytes], connection: socket.socket) -> None:
        for line in requests:
            connection.sendall(answer(self._handlers, line) + b"\n")


def answer(handlers: Mapping[str, Handler], line: bytes) -> bytes:
    """The answer line (without its line feed) to one request line; an error is an answer, too."""
    request_id = None
    try:
        request = json.loads(line)
        request_id = request["id"]
        result = _handler(handlers, request["method"])(request["params"])
        return _dump({"id": request_id, "result": result})
    except Exception as error:  # noqa: BLE001 - whatever happened, the bridge waits for an answer
        return _dump({"id": request_id, "error": error_json(error)})


def error_json(error: Exception) -> dict[str, Any]:
    """An error as the bridge turns it into Spark's; traces stay in the log."""
    if isinstance(error, IcecombError):
        _log.debug("refused", exc_info=error)
        return {"type": type(error).__name__, "message": error.message, "hint": error.hint}
    _log.debug("failed", exc_info=error)
    text = str(error) or "no message"
    return {
        "type": type(error).__name__,
        "message": f"icecomb's planner failed: {type(error).__name__}: {text}",
        "hint": "ICECOMB_TRACE=1 in the driver's environment shows in its log where it came from",
    }


def _handler(handlers: Mapping[str, Handler], method: str) -> Handler:
    try:
        return handlers[method]
    except KeyError:
        raise ValueError(
            f"no method {method!r}: bridge and planner are of different versions"
        ) from None


def _dump(message: dict[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode("ascii")
