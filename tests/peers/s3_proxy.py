"""A proxy in front of an S3 that does to chosen requests what networks and busy stores do.

    python -m tests.peers.s3_proxy ENDPOINT PORT LATENCY_MS

runs one as a process of its own, for measurements.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import sys
import threading
import time
import urllib.parse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MIDDLE_FAULTS = (
    "twice", "done_503", "text_503", "text_404", "no_headers", "login", "done_login", "blank", "another",
)  # fmt: skip
"""What something between a client and the store does, without a word of the store."""
REPEATED = "x-repeated-by-a-test"
"""A header of what is sent on for the second time."""
FAULTS = ("refuse", "lose", "late", "busy", "error", "done_error", "torn", "short")
_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}
_ANSWERS = {
    "busy": (503, "SlowDown", "Please reduce your request rate."),
    "error": (500, "InternalError", "We encountered an internal error. Please try again."),
    "done_error": (500, "InternalError", "We encountered an internal error. Please try again."),
}


@dataclass(eq=False)
class Request:
    """One request.

    Attributes:
        name: As S3 calls it: `PutObject`.
        path: The bucket and the key, decoded.
        conditional: Whether it must replace nothing.
        begun, ended: Seconds of one clock.
        fault: What became of it, empty if all went well.
    """

    name: str
    path: str
    conditional: bool
    begun: float = field(default_factory=time.monotonic)
    ended: float = 0.0
    fault: str = ""


class S3Proxy:
    """Answers at `.endpoint` for the S3 at another.

    `.choose` is asked for each request what becomes of it: nothing (an empty text), or one of
    `FAULTS`: `refuse` (cut before it is sent on), `lose` (done, the answer lost), `late` (cut, and
    done when `.release()` is called), `busy` (503 SlowDown, not done), `error` (500, not done),
    `done_error` (500, although done), `torn` (half of what is sent arrives), `short` (half of the
    answer arrives); or one of `MIDDLE_FAULTS`: `twice` (sent on twice, the second answer arrives), `done_503` (done,
    answered by 503 in plain text), `text_503`, `text_404` (not done, answered in plain text), `no_headers` (done,
    the answer has no length and no ETag), `login` (not done, answered by 200 and a page that has an ETag), `done_login`
    (done, answered so), `blank` (not done, answered by 200 and nothing), `another` (not done, answered by what a request
    of this name was answered before, if there was one); or `replace` (its `If-None-Match` is passed over, as old stores do); or a
    status and a code, as `403 AccessDenied` (not done). `.requests` are all so far.

    Of requests that must replace nothing only one at a time is sent on for a key: moto looks first
    and then writes.
    """

    def __init__(self, endpoint: str, *, latency_s: float = 0.0, port: int = 0) -> None:
        self.latency_s = latency_s
        self.requests: list[Request] = []
        self.choose: Callable[[Request], str] = lambda _: ""
        self._target = endpoint.removeprefix("http://")
        self._held: list[Callable[[], None]] = []
        self._before: dict[str, tuple[int, list[tuple[str, str]], bytes]] = {}
        self._of_key: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._local = threading.local()
        proxy = self

        class Handler(_Handler):
            def answer(self) -> None:
                proxy.serve(self)

            def finish(self) -> None:
                # the thread ends, and with it what only it knows
                with contextlib.suppress(OSError):
                    super().finish()
                proxy.disconnect()

        self._server = _Server(("127.0.0.1", port), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def settings(self, direct: Mapping[str, str]) -> dict[str, str]:
        """What a catalog is told to come by here."""
        return {**direct, "s3.endpoint": self.endpoint}

    def close(self) -> None:
        """Answers no more."""
        self._server.shutdown()
        self._server.server_close()

    @property
    def counts(self) -> Counter[str]:
        """How many requests there were, by name."""
        return Counter(each.name for each in self.requests)

    def serial(self) -> int:
        """How many of the requests came one after another: the longest chain of them."""
        chain, last = 0, 0.0
        for each in sorted(self.requests, key=lambda each: each.ended):
            if each.begun >= last:
                chain, last = chain + 1, each.ended
        return chain

    @contextlib.contextmanager
    def fresh(self) -> Iterator[None]:
        """Count from here on; at the end nothing goes wrong any more."""
        self.requests = []
        try:
            yield
        finally:
            self.choose = lambda _: ""

    def release(self) -> int:
        """Let late requests arrive now; how many there were."""
        held, self._held = self._held, []
        for each in held:
            each()
        self.disconnect()
        return len(held)

    def named(self, method: str, path: str, headers: Any, body: bytes) -> Request:  # noqa: ARG002
        """What a request is; of another store it is something else."""
        return _request(method, path, headers)

    def serve(self, handler: _Handler) -> None:
        """Answer one request."""
        body = handler.body()
        request = self.named(handler.command, handler.path, handler.headers, body)
        self.requests.append(request)
        fault = request.fault = self.choose(request)
        if self.latency_s:
            time.sleep(self.latency_s)
        try:
            self._answer(handler, request, body, fault)
        finally:
            request.ended = time.monotonic()

    def _answer(self, handler: _Handler, request: Request, body: bytes, fault: str) -> None:
        headers = dict(handler.headers.items())
        if fault == "replace":
            headers.pop("If-None-Match", None)
        asked = (handler.command, handler.path, headers, body)
        if fault in {"refuse", "late", "torn"}:
            if fault == "late":
                self._held.append(lambda: _ignored(self.forward(request, *asked)))
            elif fault == "torn":
                self._tear(*asked)
            handler.cut()
            return
        if fault in {"busy", "error"}:
            handler.say(*_ANSWERS[fault])
            return
        if fault[:1].isdigit():
            status, _, code = fault.partition(" ")
            handler.say(int(status), code, "as a test wants it")
            return
        if fault in {"text_503", "text_404"}:
            handler.say_plainly(int(fault[-3:]))
            return
        if fault == "login":
            handler.show_a_page()
            return
        if fault == "blank":
            handler.reply(200, [], b"")
            return
        if fault == "another" and request.name in self._before:
            handler.reply(*self._before[request.name])
            return
        status, headers, found = self.forward(request, *asked)
        if fault == "twice":
            again = (handler.command, handler.path, {**asked[2], REPEATED: "1"}, body)
            status, headers, found = self.forward(request, *again)
        self._before[request.name] = status, headers, found
        if fault == "done_503":
            handler.say_plainly(503)
        elif fault == "done_login":
            handler.show_a_page()
        elif fault == "no_headers":
            handler.reply_unframed(status, found)
        elif fault == "lose":
            handler.cut()
        elif fault == "done_error":
            handler.say(*_ANSWERS[fault])
        else:
            handler.reply(status, headers, found, cut=fault == "short")

    def forward(
        self, request: Request, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """Ask the server; what it answers."""
        with self._of_key[request.path] if request.conditional else contextlib.nullcontext():
            for again in (True, False):
                connection = self._connection()
                try:
                    connection.request(method, path, body or None, _kept(headers, body))
                    answer = connection.getresponse()
                    return answer.status, answer.getheaders(), answer.read()
                except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                    # the server had ended an idle connection
                    self.disconnect()
                    if not again:
                        raise
        raise AssertionError

    def disconnect(self) -> None:
        """End this thread's connection to the server."""
        found = getattr(self._local, "connection", None)
        if found is not None:
            found.close()
            self._local.connection = None

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if found is None:
            found = http.client.HTTPConnection(self._target, timeout=60)
            found.connect()
            found.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._local.connection = found
        return found

    def _tear(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> None:
        connection = http.client.HTTPConnection(self._target, timeout=60)
        # a server may end the connection before it has read that much
        with contextlib.closing(connection), contextlib.suppress(OSError):
            connection.putrequest(method, path, skip_host=True)
            for name, value in _kept(headers, body).items():
                connection.putheader(name, value)
            connection.endheaders()
            connection.send(body[: len(body) // 2])


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave are no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def answer(self) -> None:
        raise NotImplementedError

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = lambda self: self.answer()  # noqa: N815

    def handle_expect_100(self) -> bool:
        done = super().handle_expect_100()
        self.wfile.flush()
        return done

    def log_message(self, *_: Any) -> None:
        pass

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def say(self, status: int, code: str, message: str) -> None:
        text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        found = b"" if self.command == "HEAD" else text
        headers = [("Content-Type", "application/xml"), ("x-amz-request-id", "of-a-test")]
        self.reply(status, headers, found)

    def say_plainly(self, status: int) -> None:
        text = b"" if self.command == "HEAD" else b"upstream connect error or disconnect"
        self.reply(status, [("Content-Type", "text/plain")], text)

    def show_a_page(self) -> None:
        text = b"<html><body><form action=/login>Who are you?</form></body></html>"
        headers = [
            ("Content-Type", "text/html"),
            ("Content-Length", str(len(text))),
            ("ETag", '"5f8d-1a2b"'),
            ("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT"),
        ]
        self.reply(200, headers, b"" if self.command == "HEAD" else text)

    def reply_unframed(self, status: int, found: bytes) -> None:
        self.send_response_only(status)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found)
        self.wfile.flush()
        self.cut()

    def reply(
        self, status: int, headers: list[tuple[str, str]], found: bytes, *, cut: bool = False
    ) -> None:
        self.send_response_only(status)
        said = {name.lower(): value for name, value in headers}
        for name, value in headers:
            if name.lower() not in _HOP:
                self.send_header(name, value)
        length = said.get("content-length", "0") if self.command == "HEAD" else str(len(found))
        if status != 204:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(found[: len(found) // 2] if cut else found)
        self.wfile.flush()
        if cut:
            self.cut()


def _kept(headers: Mapping[str, str], body: bytes) -> dict[str, str]:
    found = {name: value for name, value in headers.items() if name.lower() not in _HOP}
    return {**found, "Content-Length": str(len(body))}


def _ignored(_: Any) -> None:
    """What nobody waits for."""


def _request(method: str, path: str, headers: Any) -> Request:
    found = urllib.parse.urlsplit(path)
    asked = dict(urllib.parse.parse_qsl(found.query, keep_blank_values=True))
    copied = "x-amz-copy-source" in headers
    name = {
        "HEAD": "HeadObject",
        "GET": "ListObjectsV2" if "list-type" in asked else "GetObject",
        "DELETE": "AbortMultipartUpload" if "uploadId" in asked else "DeleteObject",
        "PUT": ("UploadPart" if "uploadId" in asked else "") + ("Copy" if copied else "")
        or "PutObject",
        "POST": "DeleteObjects"
        if "delete" in asked
        else "CompleteMultipartUpload"
        if "uploadId" in asked
        else "CreateMultipartUpload",
    }.get(method, method)
    return Request(name, urllib.parse.unquote(found.path), "If-None-Match" in headers)


if __name__ == "__main__":
    S3Proxy(sys.argv[1], port=int(sys.argv[2]), latency_s=float(sys.argv[3]) / 1000)
    threading.Event().wait()
