"""Somebody else's web server on 127.0.0.1: it keeps what it is told, and has nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], bytes]


class Listener:
    """A server at `.address`; `.requests` has the text of each request: line, headers and body.

    Args:
        answer: What it says to a method and a path; a plain 404 if None.
    """

    def __init__(self, answer: Callable[[str, str], Answer] | None = None) -> None:
        self.requests: list[str] = []
        self.answer = answer or (lambda *_: (404, {}, b""))
        listener = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def parse_request(self) -> bool:
                parsed = super().parse_request()
                if parsed:
                    body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                    listener.requests.append(f"{self.requestline}\n{self.headers}\n{body!r}")
                    status, headers, data = listener.answer(self.command, self.path)
                    self.send_response(status)
                    for name, value in {**headers, "Content-Length": str(len(data))}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(b"" if self.command == "HEAD" else data)
                    self.wfile.flush()
                return False

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        self.address = f"127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()
