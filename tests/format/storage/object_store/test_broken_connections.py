"""A connection that breaks after a request was sent does not tell whether the store executed it."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import json
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from icecomb.format.errors import FileIOError, FileStateUnknownError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store import creation
from icecomb.format.storage.object_store.client import StoreBusyError
from tests.peers.ports import closed_port

MISSING = json.dumps({"error": {"code": 404, "message": "No such object: b/x"}}).encode()
HEAD = (
    b"HTTP/1.1 404 Not Found\r\nx-ms-error-code: BlobNotFound\r\nx-ms-request-id: r\r\n"
    b"x-amz-request-id: r\r\nContent-Length: %d\r\n\r\n" % len(MISSING)
)
STORES = ("gs", "abfs", "s3")
NOT_TLS = b"\x17\x03\x03\x00\x30" + b"?" * 48
"""A record that nobody encrypted."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "store.example")])
    day, now = dt.timedelta(1), dt.datetime.now(dt.timezone.utc)
    names = [x509.DNSName("store.example"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "c.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (folder / "k.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )
    return str(folder / "c.pem"), str(folder / "k.pem")


class Listener:
    """Serves each connection by a function, in a thread; `.address` is `host:port`."""

    def __init__(self, serve: Callable[[socket.socket], None]) -> None:
        self._serve = serve
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = self._socket.accept()
                threading.Thread(target=self._one, args=(one,), daemon=True).start()

    def _one(self, one: socket.socket) -> None:
        with contextlib.suppress(OSError), one:
            self._serve(one)

    def close(self) -> None:
        self._socket.close()


def requests_of(plug: socket.socket) -> Iterator[str]:
    """The request lines of a connection, each when its body arrived."""
    with plug.makefile("rb") as lines:
        while line := lines.readline():
            head = line
            while (header := lines.readline()) not in {b"\r\n", b""}:
                head += header
            length = re.search(rb"(?i)content-length: (\d+)", head)
            lines.read(int(length[1]) if length else 0)
            yield line.decode()


class Store:
    """Has nothing; a connection breaks, as `breaking` does it, when a write has arrived."""

    def __init__(self, breaking: Callable[[socket.socket, socket.socket], None]) -> None:
        self.writes: list[str] = []
        self.tls: ssl.SSLContext | None = None
        self._breaking = breaking

    def __call__(self, raw: socket.socket) -> None:
        with raw.dup() as below, self._plug(raw) as plug:
            for line in requests_of(plug):
                if line.startswith(("PUT", "POST")):
                    self.writes.append(line)
                    self._breaking(plug, below)
                    return
                plug.sendall(HEAD if line.startswith("HEAD") else HEAD + MISSING)

    def _plug(self, raw: socket.socket) -> socket.socket:
        return raw if self.tls is None else self.tls.wrap_socket(raw, server_side=True)


def hang_up(plug: socket.socket, _: socket.socket) -> None:
    plug.shutdown(socket.SHUT_RDWR)


def inject(_: socket.socket, below: socket.socket) -> None:
    below.sendall(NOT_TLS)
    time.sleep(0.3)


def settings(kind: str, endpoint: str, ca_path: str = "") -> dict[str, str]:
    scheme, _, host = endpoint.partition("://")
    twice = {"io.object-store.max-attempts": "2"}
    if kind == "gs":
        return {**twice, "gcs.service.host": endpoint, "gcs.no-auth": "true"}
    if kind == "abfs":
        return {
            **twice, "adls.account-host": host, "adls.blob-storage-scheme": scheme,
            "adls.anon": "true", "adls.account-name": "a",
        }  # fmt: skip
    return {
        **twice, "s3.endpoint": endpoint, "s3.access-key-id": "a", "s3.secret-access-key": "b",
        **({"s3.ca-path": ca_path} if ca_path else {}),
    }  # fmt: skip


@pytest.fixture
def listen(monkeypatch):
    monkeypatch.setattr(creation, "FIRST_S", 0.0)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with contextlib.ExitStack() as stack:

        def begin(serve: Callable[[socket.socket], None]) -> str:
            made = Listener(serve)
            stack.callback(made.close)
            return made.address

        yield begin


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("breaking", [hang_up, inject])
def test_a_write_whose_encrypted_connection_breaks_is_unknown(
    listen, certificate, monkeypatch, kind, breaking
):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate[0])
    store = Store(breaking)
    store.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    store.tls.load_cert_chain(*certificate)
    io = FileIO(settings(kind, f"https://{listen(store)}", certificate[0]))
    with contextlib.closing(io), pytest.raises(FileStateUnknownError, match="not known whether"):
        io.create(f"{kind}://b/x", b"data")
    assert store.writes


@pytest.mark.parametrize("kind", STORES)
def test_what_is_not_sent_to_a_store_that_is_not_trusted_is_not_written(listen, certificate, kind):
    store = Store(hang_up)
    store.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    store.tls.load_cert_chain(*certificate)
    io = FileIO(settings(kind, f"https://{listen(store)}"))
    with contextlib.closing(io), pytest.raises(FileIOError) as caught:
        io.create(f"{kind}://b/x", b"data")
    assert not isinstance(caught.value, FileStateUnknownError)
    assert "authorities to trust" in (caught.value.hint or "")
    assert not store.writes


def by_proxy(monkeypatch: pytest.MonkeyPatch, kind: str, scheme: str, address: str) -> FileIO:
    """A store that only the proxy knows."""
    monkeypatch.setenv(f"{scheme}_proxy", f"http://{address}")
    ca_path = os.environ.get("REQUESTS_CA_BUNDLE", "")
    mine = {"s3.proxy-uri": f"http://{address}"} if kind == "s3" else {}
    return FileIO({**settings(kind, f"{scheme}://store.example", ca_path), **mine})


@pytest.mark.parametrize("kind", STORES)
def test_a_write_that_a_proxy_took_is_unknown(listen, monkeypatch, kind):
    store = Store(hang_up)
    io = by_proxy(monkeypatch, kind, "http", listen(store))
    with contextlib.closing(io), pytest.raises(FileStateUnknownError, match="not known whether"):
        io.create(f"{kind}://b/x", b"data")
    assert store.writes


@pytest.mark.parametrize("kind", STORES)
def test_a_write_through_a_tunnel_that_breaks_is_unknown(listen, certificate, monkeypatch, kind):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate[0])
    store = Store(hang_up)
    store.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    store.tls.load_cert_chain(*certificate)

    def tunnel(plug: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += plug.recv(1)
        plug.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        store(plug)

    io = by_proxy(monkeypatch, kind, "https", listen(tunnel))
    with contextlib.closing(io), pytest.raises(FileStateUnknownError, match="not known whether"):
        io.create(f"{kind}://b/x", b"data")
    assert store.writes


@pytest.mark.parametrize("kind", ["gs", "abfs"])
def test_what_no_proxy_took_is_not_written(listen, monkeypatch, kind):
    def refuse(plug: socket.socket) -> None:
        next(requests_of(plug))
        plug.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    with closed_port() as port:
        for address in (listen(refuse), f"127.0.0.1:{port}"):
            io = by_proxy(monkeypatch, kind, "https", address)
            with contextlib.closing(io), pytest.raises(StoreBusyError, match="was not reached"):
                io.create(f"{kind}://b/x", b"data")
