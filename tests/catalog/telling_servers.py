"""Servers that answer with all that they were sent, headers and logins included."""

from __future__ import annotations

import html
import json
import re
import socket
import struct
import threading
from itertools import count

from tests.peers.listener import Answer, Listener

_KINDS = (
    (200, "text/html"),
    (403, "application/json"),
    (500, "application/xml"),
    (401, "application/json"),
    (307, "application/octet-stream"),
    (404, "text/plain"),
)
_CALL = b"\x80\x01\x00\x01"
_REFUSAL = b"\x80\x01\x00\x03"
_INTERNAL_ERROR = b"\x08\x00\x02\x00\x00\x00\x06\x00"
_REPLY = b"\x80\x01\x00\x02"
_EXCEPTION = b"\x0c\x00\x01"


def telling_listener() -> Listener:
    """An HTTP server whose pages and errors of all kinds have the request in them."""
    server, kinds = Listener(), count()

    def answer(_: str, path: str) -> Answer:
        status, kind = _KINDS[next(kinds) % len(_KINDS)]
        url = f"http://{server.address}{path}"
        said = f"{url} {' '.join(server.requests[-1].split())}"
        forms = {
            "application/json": json.dumps(
                {
                    "RemoteException": {"exception": "AccessControlException", "message": said},
                    "error": {"code": "denied", "message": said},
                }
            ),
            "application/xml": f"<Error><Code>Denied</Code><Message>{html.escape(said)}</Message></Error>",
        }
        headers = {"Content-Type": kind, "Location": url, "x-ms-error-code": "AuthenticationFailed"}
        return status, headers, forms.get(kind, said).encode()

    server.answer = answer
    return server


class TellingMetastore:
    """A server that refuses each Thrift call with the call's own bytes, or just sends these."""

    def __init__(self) -> None:
        self.requests: list[bytes] = []
        self._plug = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._plug.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._plug.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection:
            while asked := connection.recv(1 << 16):
                self.requests.append(asked)
                if len(self.requests) % 4 == 0 or not asked.startswith(_CALL):
                    connection.sendall(asked)
                    return
                end = 8 + struct.unpack(">I", asked[4:8])[0]
                said = " ".join(re.findall(r"[\x21-\x7e]+", asked.decode("latin-1"))).encode()
                name, number = asked[8:end], asked[4 : end + 4]
                text = b"\x0b\x00\x01" + struct.pack(">I", len(said)) + said
                if name == b"set_ugi" and len(self.requests) % 4 == 3:
                    connection.sendall(_REPLY + number + _EXCEPTION + text + b"\x00\x00")
                else:
                    connection.sendall(_REFUSAL + number + text + _INTERNAL_ERROR)

    def close(self) -> None:
        """Listen no more."""
        self._plug.close()


class SilentServer:
    """A server that accepts connections and says nothing."""

    def __init__(self) -> None:
        self._plug = socket.create_server(("127.0.0.1", 0), backlog=4096)
        self.address = f"127.0.0.1:{self._plug.getsockname()[1]}"

    def close(self) -> None:
        """Listen no more."""
        self._plug.close()
