"""JSON lines over a loopback socket: proofs first, then alternating requests and answers.

The child's stdin and stdout are not used, because anything a library prints would break the
protocol. Both sides prove that they know a token, which neither sends, as other users of the
machine can connect to the port and, when this process has died, listen at it. The bridge sends a
nonce; the planner answers with one of its own and ``proof("planner", ...)`` in one line; the bridge
sends ``proof("bridge", ...)`` and is greeted by a line, so that it knows that its connection is
served before it sends what must not be sent twice. Long lists travel in pages, see `lines_of`.
Closing a connection, or the client's side of it, cancels its request; see `cancellation`.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import selectors
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import IO, Any, Final, TypeAlias

from icecomb.format.call_log import timed
from icecomb.format.cancellation import Cancellation, cancellable, check_wanted
from icecomb.format.errors import IcecombError
from icecomb.format.printable_text import printable_lines
from icecomb.spark.planner.protocol.message import PROTOCOL

Answer: TypeAlias = "Generator[dict[str, Any], None, Any] | Any"
"""The result as JSON; a generator yields pages of its lists and returns the rest."""

Handler = Callable[[dict[str, Any]], Answer]

_log = logging.getLogger(__name__)
_MAX_STRANGERS: Final = 16
NONCE: Final = 32
"""Hexadecimal digits of each side's nonce."""
TOKEN_S: Final = 5.0
_PAUSE_S: Final = 0.2
_LONG: Final = 100
_PAGE_CHARACTERS: Final = 1 << 20
_PAGE: Final = b'{"page":'


class Server:
    """A server that answers the methods in `handlers` to clients that know `token`.

    Without the token a client holds one of a few connections for a few seconds: the oldest is
    closed when there are too many.

    Args:
        handlers: The function of each method, from its params to JSON.
        token: The secret shared with the bridge.
    """

    def __init__(self, handlers: Mapping[str, Handler], token: str) -> None:
        self._handlers = handlers
        self._token = token
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        # an ordered set
        self._strangers: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        self._hangups = Hangups()

    @property
    def port(self) -> int:
        """The loopback port."""
        port: int = self._listener.getsockname()[1]
        return port

    def start(self) -> None:
        """Accept connections in a thread that does not keep the process alive."""
        threading.Thread(target=self._accept, name="planner-accept", daemon=True).start()

    def close(self) -> None:
        """Accept no further connections."""
        # wakes the accepting thread, which closing does not
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        failing = False
        while self._listener.fileno() >= 0:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:
                # file descriptors or memory may become available again
                if not failing and self._listener.fileno() >= 0:
                    _log.warning("no connection can be accepted: %s", error)
                failing = True
                time.sleep(_PAUSE_S)
                continue
            failing = False
            self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        with self._lock:
            self._strangers[connection] = None
            surplus = list(self._strangers)[:-_MAX_STRANGERS]
        for stranger in surplus:
            with suppress(OSError):
                stranger.shutdown(socket.SHUT_RDWR)
        try:
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        except RuntimeError as error:
            _log.warning("a connection is refused: %s", error)
            self._discard(connection)
            connection.close()
            time.sleep(_PAUSE_S)

    def _discard(self, stranger: socket.socket) -> None:
        with self._lock:
            self._strangers.pop(stranger, None)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                known = self._knows(connection)
            except OSError:
                return
            finally:
                self._discard(connection)
            if not known:
                return
            try:
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connection.sendall(line_of({"protocol": PROTOCOL}))
                with connection.makefile("rb") as requests:
                    self._converse(requests, connection)
            except OSError:
                # the bridge disconnected: it repeats the request on a new connection if needed
                _log.debug("connection lost", exc_info=True)

    def _knows(self, connection: socket.socket) -> bool:
        """Prove knowledge of the token, and return whether the other end proves it, too."""
        deadline = time.monotonic() + TOKEN_S
        theirs = _first(connection, NONCE + 1, deadline).decode("ascii", "replace")[:NONCE]
        mine = secrets.token_hex(NONCE // 2)
        connection.sendall(f"{mine}{proof(self._token, 'planner', theirs, mine)}\n".encode())
        expected = f"{proof(self._token, 'bridge', theirs, mine)}\n".encode()
        return hmac.compare_digest(_first(connection, len(expected), deadline), expected)

    def _converse(self, requests: IO[bytes], connection: socket.socket) -> None:
        for line in requests:
            for part in answer(self._handlers, line, requests, lambda: self._watched(connection)):
                connection.sendall(part)

    @contextmanager
    def _watched(self, connection: socket.socket) -> Iterator[None]:
        cancellation = Cancellation()
        with self._hangups.watching(connection, cancellation), cancellable(cancellation):
            yield


def proof(token: str, side: str, bridge_nonce: str, planner_nonce: str) -> str:
    """Return the proof that a side, ``bridge`` or ``planner``, knows the token."""
    message = f"{side} {bridge_nonce} {planner_nonce}".encode()
    return hmac.new(token.encode(), message, "sha256").hexdigest()


def _first(connection: socket.socket, count: int, deadline: float) -> bytes:
    """Read the next bytes of a connection, fewer if it ends."""
    found = b""
    while len(found) < count:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        part = connection.recv(count - len(found))
        if not part:
            break
        found += part
        if time.monotonic() > deadline:
            raise TimeoutError
    return found


def answer(
    handlers: Mapping[str, Handler],
    line: bytes,
    pages: Iterable[bytes] = (),
    watched: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[bytes]:
    """Yield the lines of the answer to a request; an error is an answer, too.

    Args:
        pages: The lines that follow the first one.
        watched: A context in which it is answered, after its last line was read.
    """
    request_id = None
    try:
        request = read_message(line, pages, "params")
        request_id = request["id"]
        handler = _handler(handlers, request["method"])
        with watched():
            with timed(_log, str(request["method"])):
                result = handler(request["params"])
                if isinstance(result, Generator):
                    result = yield from _pages(result)
            yield from lines_of({"id": request_id, "result": result}, "result")
    except Exception as error:  # noqa: BLE001 - whatever happened, the bridge waits for an answer
        yield line_of({"id": request_id, "error": error_json(error)})


def _pages(found: Generator[dict[str, Any], None, Any]) -> Generator[bytes, None, Any]:
    while True:
        try:
            page = next(found)
        except StopIteration as end:
            return end.value
        check_wanted()
        yield page_of(page)


def error_json(error: Exception) -> dict[str, Any]:
    """Convert an error to JSON, from which the bridge makes Spark's; traces stay in the log."""
    if isinstance(error, IcecombError):
        _log.debug("refused", exc_info=error)
        message, hint = printable_lines(error.message), printable_lines(error.hint or "")
        return {"types": _types(error), "message": message, "hint": hint or None}
    _log.debug("failed", exc_info=error)
    text = printable_lines(str(error)) or "no message"
    return {
        "types": _types(error),
        "message": f"icecomb's planner failed: {type(error).__name__}: {text}",
        "hint": "set ICECOMB_TRACE=1 in the driver's environment to get a traceback in its log",
    }


def _types(error: Exception) -> list[str]:
    """Return the names of an error's classes, the most specific first."""
    return [each.__name__ for each in type(error).__mro__]


def _handler(handlers: Mapping[str, Handler], method: str) -> Handler:
    try:
        return handlers[method]
    except KeyError:
        raise ValueError(
            f"no method {method!r}: bridge and planner are of different versions"
        ) from None


class Hangups:
    """A thread that watches connections on which nothing is received in the meantime."""

    def __init__(self) -> None:
        # epoll and kqueue also report connections that are added while a thread waits
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._started = False

    @contextmanager
    def watching(self, connection: socket.socket, cancellation: Cancellation) -> Iterator[None]:
        """Cancel as soon as the other end closes the connection, or ends its side of it."""
        with self._lock:
            self._selector.register(connection, selectors.EVENT_READ, cancellation)
            if not self._started:
                self._started = True
                threading.Thread(target=self._watch, name="planner-hangups", daemon=True).start()
        try:
            yield
        finally:
            # a connection that was closed is not registered any more
            with self._lock, suppress(KeyError):
                self._selector.unregister(connection)

    def _watch(self) -> None:
        while True:
            for key, _ in self._selector.select():
                with self._lock:
                    self._check(key)

    def _check(self, key: selectors.SelectorKey) -> None:
        known = self._selector.get_map().get(key.fd)
        # its request may have been answered since, and its descriptor reused
        if known is None or known.data is not key.data:
            return
        connection: Any = key.fileobj
        try:
            ended = not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            # the reported data was read meanwhile: the end may still come
            return
        except OSError:
            ended = True
        self._selector.unregister(connection)
        if ended:
            key.data.cancel()


def read_message(line: bytes, following: Iterable[bytes], body: str) -> dict[str, Any]:
    """Read the rest of a message whose first line was read.

    Args:
        following: The lines after it; only those of the message are consumed.
        body: The member that holds the lists.
    """
    rest = iter(following)
    pages: list[bytes] = []
    # consume all before parsing any: even after an error, the next line starts a new message
    while line.startswith(_PAGE):
        pages.append(line)
        line = next(rest, b"")
    if not line.endswith(b"\n"):
        raise ValueError("a message is cut off")
    message: dict[str, Any] = json.loads(line)
    lists: dict[str, list[Any]] = {}
    pages.reverse()
    while pages:
        for name, elements in json.loads(pages.pop())["page"].items():
            lists.setdefault(name, []).extend(elements)
    if lists and body in message:
        message[body] = {**message[body], **lists}
    return message


def lines_of(message: Mapping[str, Any], body: str) -> Iterator[bytes]:
    """Yield the lines of a message, with line feeds: pages of the long lists, then the rest.

    A page is a line ``{"page": {"files": [...]}}``: parts to append to lists of the message's body.
    Pages come before the message, so that a list can be sent while it is produced, before its
    length is known, and no line, and no text on either side, grows with the number of files.
    """
    content = message[body]
    if not isinstance(content, dict):
        yield line_of(message)
        return
    long = {
        name: value
        for name, value in content.items()
        if isinstance(value, list) and _is_long(value)
    }
    for name, elements in long.items():
        yield from _element_pages(name, elements)
    short = {name: value for name, value in content.items() if name not in long}
    yield line_of({**message, body: short})


def page_of(lists: Mapping[str, Any]) -> bytes:
    """Return the line of a page with parts of lists."""
    return line_of({"page": lists})


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return the line of a message without pages."""
    return f"{_text(message)}\n".encode("ascii")


def _is_long(elements: Sequence[Any]) -> bool:
    texts = sum(len(element) for element in elements if isinstance(element, str))
    return len(elements) > _LONG or texts > _PAGE_CHARACTERS


def _element_pages(name: str, elements: Sequence[Any]) -> Iterator[bytes]:
    page: list[str] = []
    size = 0
    for element in elements:
        text = _text(element)
        if page and size + len(text) > _PAGE_CHARACTERS:
            yield _page(name, page)
            page, size = [], 0
        page.append(text)
        size += len(text)
    yield _page(name, page)


def _page(name: str, elements: Sequence[str]) -> bytes:
    return f'{{"page":{{{_text(name)}:[{",".join(elements)}]}}}}\n'.encode("ascii")


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
