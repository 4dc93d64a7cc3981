"""Whatever a server answers, however long and however slowly: an error of icecomb in bounded time and memory."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pytest
import requests

from icecomb.format.errors import FileIOError, FileStateUnknownError, IcecombError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store import (
    azure,
    azure_settings,
    client,
    creation,
    rest_client,
)
from icecomb.format.storage.object_store.azure_settings import AzureSettings, azure_signer
from icecomb.format.storage.object_store.file_system import ObjectFileSystem
from icecomb.format.storage.object_store.google_settings import GoogleSettings, google_signer
from tests.peers.google_key import write_key_file

DATE = "Mon, 01 Jan 2024 00:00:00 GMT"
MARKS = {"x-ms-request-id": "1", "x-amz-request-id": "1", "ETag": '"e"', "Last-Modified": DATE}


class Server:
    """Sends what `.answer` makes of a method and a target, piece by piece; `.sent` counts bytes."""

    def __init__(self) -> None:
        self.answer: Callable[[str, str], Iterable[bytes]] = lambda *_: ()
        self.sent = 0
        self.asked: list[str] = []
        self.bodies: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                one, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        with one, contextlib.suppress(OSError, ValueError), one.makefile("rb") as lines:
            while line := lines.readline().decode():
                size = 0
                while (header := lines.readline().decode().lower()) not in {"\r\n", ""}:
                    if header.startswith("content-length:"):
                        size = int(header.partition(":")[2])
                self.bodies.append(lines.read(size))
                method, target, _ = line.split(" ", 2)
                self.asked.append(line)
                for piece in self.answer(method, target):
                    one.sendall(piece)
                    self.sent += len(piece)


def said(status: int, body: bytes = b"", **headers: Any) -> bytes:
    told = {"Content-Length": len(body), **MARKS, **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in told.items())
    return f"HTTP/1.1 {status} X\r\n{head}\r\n".encode() + body


def endless(status: int, **headers: Any) -> Iterator[bytes]:
    told = {"Transfer-Encoding": "chunked", **MARKS, **headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    yield f"HTTP/1.1 {status} X\r\n{head}\r\n".encode()
    yield from itertools.repeat(b"100000\r\n" + b"x" * (1 << 20) + b"\r\n")


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(creation, "FIRST_S", 0.0)
    made = Server()
    yield made
    made.close()


STORES = ("gs", "abfs", "s3")


@pytest.fixture(params=STORES)
def store(request, server):
    io = FileIO(settings(request.param, server.address))
    yield request.param, io
    io.close()


def settings(kind: str, address: str) -> dict[str, str]:
    once = {"io.object-store.max-attempts": "1"}
    if kind == "gs":
        return {**once, "gcs.service.host": f"http://{address}", "gcs.no-auth": "true"}
    if kind == "abfs":
        return {
            **once, "adls.account-host": address, "adls.blob-storage-scheme": "http",
            "adls.anon": "true", "adls.account-name": "a",
        }  # fmt: skip
    return {
        **once, "s3.endpoint": f"http://{address}", "s3.access-key-id": "a",
        "s3.secret-access-key": "b", "s3.request-timeout": "2s",
    }  # fmt: skip


def asked(io: FileIO, start: str) -> Iterator[tuple[str, Callable[[], object]]]:
    place = f"{start}://b/p/x"

    def stream() -> None:
        with io.create_stream(place) as out:
            out.write(b"x" * (client.PART + 1))

    yield "exists", lambda: io.exists(place)
    yield "read", lambda: io.read(place)
    yield "range", lambda: io.open_input(place, 100).read(10)
    yield "create", lambda: io.create(place, b"data")
    yield "stream", stream
    yield "list", lambda: list(io.list(f"{start}://b/p"))
    yield "folders", lambda: io.folders(f"{start}://b/p")
    yield "delete", lambda: io.delete([place])
    yield "rename", lambda: io.rename(place, f"{place}2")


def js(found: Any, status: int = 200) -> bytes:
    return said(status, json.dumps(found).encode())


def xml(kind: str, inner: str) -> bytes:
    return said(200, f"<{kind}>{inner}</{kind}>".encode())


BLOB = "<Blobs><Blob><Name>p/x</Name>{}</Blob></Blobs>"
S3_LIST = "<Name>b</Name><Prefix>p/</Prefix><Contents>{}</Contents>"
ANSWERS = {
    "gs": [
        said(200, b"[" * 200_000),
        said(403, b"[" * 200_000),
        js({"kind": "k", "items": None, "name": None}),
        js({"kind": "k", "items": "abc", "name": "p/x"}),
        js({"kind": "k", "items": [None], "name": "p/x", "updated": 5}),
        js({"kind": "k", "items": [{"name": "p/x", "updated": "never"}], "name": "p/x", "updated": ""}),
        js({"kind": "k", "prefixes": [5], "name": "p/x", "metadata": 5}),
        js({"kind": "k", "items": [{"name": 5, "updated": "2024-01-01T00:00:00Z"}]}),
        said(200, b'{"name":"p/x","updated":"2024-01-01T00:00:00Z","size":"' + b"9" * 5000 + b'"}'),
        said(308, Range="bytes=0-" + "9" * 5000),
    ],
    "abfs": [
        said(200, b"abcde", Last_Modified="never"),
        said(200, b"abcde", Last_Modified="Mon, 01 Jan 999999 00:00:00 GMT"),
        xml("EnumerationResults", BLOB.format("<Properties><Content-Length>z</Content-Length></Properties>")),
        xml("EnumerationResults", BLOB.format("")),
    ],
    "s3": [
        said(200, b"abcde", Last_Modified="never"),
        xml("ListBucketResult", S3_LIST.format("<Key>p/x</Key><Size>abc</Size>")),
        xml("ListBucketResult", S3_LIST.format("<Key>p/x</Key>")),
        xml("ListBucketResult", S3_LIST.format("")),
    ],
}  # fmt: skip


def test_an_answer_that_cannot_be_parsed_is_an_error_of_icecomb(store, server):
    kind, io = store
    for answer in ANSWERS[kind]:
        server.answer = lambda *_, answer=answer: [answer]
        for _, ask in asked(io, kind):
            with contextlib.suppress(IcecombError):
                ask()  # anything else fails the test


def test_a_write_of_s3_whose_check_cannot_be_read_is_unknown(server):
    server.answer = lambda *_: [said(200, ETag='"other"', Last_Modified="never")]
    io = FileIO(settings("s3", server.address))
    with contextlib.closing(io), pytest.raises(FileStateUnknownError, match="not known whether"):
        io.create("s3://b/x", b"data")


def test_no_more_is_read_than_was_requested(store, server):
    kind, io = store
    server.answer = lambda *_: endless(206, **{"Content-Range": "bytes 0-99/1000"})
    with pytest.raises(FileIOError, match="more than the"):
        io.open_input(f"{kind}://b/p/x", 100).read(10)
    assert server.sent < 16 << 20


def test_of_a_whole_file_the_requested_range_is_read(store, server):
    kind, io = store
    server.answer = lambda *_: endless(200)
    found = io.open_input(f"{kind}://b/p/x", 5 << 20)
    found.seek(1 << 20)
    assert found.read(10) == (b"x" * 10)
    assert server.sent < 32 << 20


def test_a_file_that_is_read_whole_is_bounded(store, server, monkeypatch):
    monkeypatch.setenv("ICECOMB_MAX_UNPACKED_MIB", "2")
    kind, io = store
    server.answer = lambda *_: endless(200)
    with pytest.raises(FileIOError, match="ICECOMB_MAX_UNPACKED_MIB"):
        io.read(f"{kind}://b/p/x")
    assert server.sent < 32 << 20


@pytest.mark.parametrize("status", [200, 403])
def test_what_is_no_file_is_bounded(store, server, status, monkeypatch):
    monkeypatch.setattr(client, "ANSWER", 4 << 20)
    kind, io = store
    server.answer = lambda *_: endless(status)
    with pytest.raises(FileIOError, match="more than the"):
        list(io.list(f"{kind}://b/p"))
    with pytest.raises(FileIOError, match="more than the"):
        io.create(f"{kind}://b/p/x", b"1")
    assert server.sent < 64 << 20


@pytest.mark.parametrize("status", [300, 302, 304, 307, 400, 401, 403, 405, 412])
def test_a_refusal_by_a_proxy_proves_nothing(store, server, status):
    kind, io = store

    def answer(method: str, _: str) -> list[bytes]:
        if method in {"PUT", "POST"}:
            return [b"HTTP/1.1 %d X\r\nContent-Length: 7\r\n\r\nblocked" % status]
        missing = {"gs": js({"error": {"message": "No such object"}}, 404)}
        return [missing.get(kind, said(404, x_ms_error_code="BlobNotFound"))]

    server.answer = answer
    with pytest.raises(FileStateUnknownError, match="not known whether"):
        io.create(f"{kind}://b/p/x", b"data")


@pytest.mark.parametrize("told", [None, "bytes 10-18/100", "bytes 0-9/100", "bytes */100"])
def test_a_part_that_does_not_say_which_is_not_believed(store, server, told):
    kind, io = store
    range_ = {} if told is None else {"Content-Range": told}
    server.answer = lambda *_: [said(206, b"0123456789", **range_)]
    found = io.open_input(f"{kind}://b/p/x", 1 << 24)
    found.seek(1 << 23)
    with pytest.raises(FileIOError, match="requested bytes"):
        found.read(10)


@pytest.mark.parametrize("total", ["100", "10", "*"])
def test_a_part_of_a_file_is_not_the_file(store, server, total):
    kind, io = store
    server.answer = lambda *_: [said(206, b"0123456789", Content_Range=f"bytes 0-9/{total}")]
    with pytest.raises(FileIOError, match="whole file"):
        io.read(f"{kind}://b/p/x")
    server.answer = lambda *_: [said(416)]
    with pytest.raises(FileIOError):
        io.read(f"{kind}://b/p/x")


@pytest.mark.parametrize("total", ["100", "15", "*"])
def test_fewer_bytes_than_requested_are_the_last_ones(store, server, total):
    kind, io = store
    found = cast("ObjectFileSystem", io.served_by(f"{kind}://b/p/x")).place(f"{kind}://b/p/x")
    server.answer = lambda *_: [said(206, b"56789", Content_Range=f"bytes 5-9/{total}")]
    for length in (None, 6):
        with pytest.raises(FileIOError, match="end of the file"):
            found.client.read("p/x", "x", 5, length)
    assert found.client.read("p/x", "x", 5, 5) == b"56789"
    server.answer = lambda *_: [said(206, b"56789", Content_Range="bytes 5-9/10")]
    assert found.client.read("p/x", "x", 5) == found.client.read("p/x", "x", 5, 6) == b"56789"


@pytest.mark.parametrize(
    "end",
    [
        "Content-Length: -1", "Content-Length: x", "Content-Length: +5", "Content-Length: 5, 5",
        "Content-Length: 5\r\nContent-Length: 6", "Content-Length:", "Transfer-Encoding: identity",
        "Transfer-Encoding:", "Transfer-Encoding: gzip, chunked", "X: y",
    ],
)  # fmt: skip
def test_a_file_whose_end_is_not_told_is_not_believed(store, server, end):
    def cut(_: str, __: str) -> Iterator[bytes]:
        yield said(200).replace(b"Content-Length: 0", end.encode()) + b"5\r\nabcde\r\n0\r\n\r\n"
        raise ConnectionAbortedError

    kind, io = store
    server.answer = cut
    with pytest.raises(FileIOError):
        io.read(f"{kind}://b/p/x")


def test_a_part_of_less_than_no_bytes_is_not_read(store, server):
    kind, io = store

    def parts(_: str, __: str) -> Iterator[bytes]:
        yield next(endless(200)) + b"-1\r\n"
        yield from itertools.repeat(b"x" * (1 << 20), 200)

    server.answer = parts
    for ask in (io.read, lambda place: list(io.list(place))):
        with pytest.raises(FileIOError):
            ask(f"{kind}://b/p/x")
    assert server.sent < 64 << 20


def test_who_gives_a_token_cannot_ask_for_a_day(server, monkeypatch):
    monkeypatch.setattr(azure_settings, "LONGEST_PAUSE_S", 0.01)
    server.answer = lambda *_: [said(429, b"{}", Retry_After="86400")]
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://{server.address}/token")
    monkeypatch.setenv("IDENTITY_HEADER", "x")
    with contextlib.closing(azure_signer(AzureSettings(account="a", managed=True))) as signer:
        begun = time.monotonic()
        with pytest.raises(FileIOError, match="No credentials were found"):
            signer(requests.Request("GET", "https://a.invalid/c").prepare())
    assert time.monotonic() - begun < 60


def test_what_is_sent_for_a_token_follows_no_redirect(server, key_file):
    server.answer = lambda *_: [said(307, Location=f"http://{server.address}/elsewhere")]
    signer = google_signer(GoogleSettings(key_file=key_file))
    with contextlib.closing(signer), pytest.raises(FileIOError, match="did not renew"):
        signer(requests.Request("GET", "https://a.invalid/c").prepare())
    assert not any("elsewhere" in each for each in server.asked)


@pytest.fixture
def key_file(server, tmp_path):
    return write_key_file(tmp_path / "key.json", f"http://{server.address}/token")


def test_the_answer_of_who_assumes_a_role_is_bounded(server, monkeypatch):
    monkeypatch.setattr(client, "ANSWER", 4 << 20)
    server.answer = lambda *_: endless(200, **{"Content-Type": "text/xml"})
    role = {
        "s3.role-arn": "arn:aws:iam::123456789012:role/reader",
        "fs.s3a.assumed.role.sts.endpoint": f"http://{server.address}",
    }
    io = FileIO({**settings("s3", server.address), **role})
    with contextlib.closing(io), pytest.raises(FileIOError, match="more than the"):
        io.exists("s3://b/p/x")
    assert {each.split()[0] for each in server.asked} == {"POST"}
    assert server.sent < 64 << 20


@pytest.fixture
def without_keys(server, monkeypatch, tmp_path):
    """Settings of S3 without keys, and a machine that has none."""
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "AWS_EC2_METADATA_DISABLED",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setattr(client, "ANSWER", 4 << 20)
    given = settings("s3", server.address)
    return {name: given[name] for name in given if "key" not in name}


@pytest.mark.parametrize(
    "variable", ["AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_CONTAINER_CREDENTIALS_FULL_URI"]
)
def test_the_answer_of_the_machine_is_bounded(server, monkeypatch, without_keys, variable):
    monkeypatch.setenv(variable, f"http://{server.address}/")
    server.answer = lambda *_: endless(200, **{"Content-Type": "application/json"})
    io = FileIO(without_keys)
    with contextlib.closing(io), pytest.raises(FileIOError, match="more than the"):
        io.exists("s3://b/p/x")
    assert server.sent < 64 << 20


@pytest.mark.parametrize("profile", ["pod", "team"])
def test_the_answer_of_who_gives_keys_to_a_profile_is_bounded(
    server, monkeypatch, tmp_path, without_keys, profile
):
    token = tmp_path / "token"
    token.write_text("of the pod")
    config = tmp_path / "config"
    role = "role_arn = arn:aws:iam::123456789012:role/reader"
    config.write_text(
        f"[profile pod]\n{role}\nweb_identity_token_file = {token}\n"
        f"[profile team]\n{role}\nsource_profile = own\n"
        "[profile own]\naws_access_key_id = id\naws_secret_access_key = secret\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://{server.address}")
    server.answer = lambda *_: endless(200, **{"Content-Type": "text/xml"})
    io = FileIO({**without_keys, "s3.profile-name": profile})
    with contextlib.closing(io), pytest.raises(FileIOError, match="more than the"):
        io.exists("s3://b/p/x")
    assert {each.split()[0] for each in server.asked} == {"POST"}
    assert server.sent < 64 << 20


def test_the_answer_of_who_gives_a_token_is_bounded(server, monkeypatch, key_file):
    monkeypatch.setattr(client, "ANSWER", 4 << 20)
    server.answer = lambda *_: endless(200, **{"Content-Type": "application/json"})
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://{server.address}/token")
    monkeypatch.setenv("IDENTITY_HEADER", "x")
    for signer in (
        azure_signer(AzureSettings(account="a", managed=True)),
        google_signer(GoogleSettings(key_file=key_file)),
    ):
        with contextlib.closing(signer), pytest.raises(FileIOError, match="more than the"):
            signer(requests.Request("GET", "https://a.invalid/c").prepare())
    assert server.sent < 128 << 20


def test_the_answer_of_a_machine_of_googles_is_bounded(server, monkeypatch, tmp_path):
    monkeypatch.setattr(client, "ANSWER", 1 << 16)
    server.answer = lambda *_: endless(200, **{"Content-Type": "text/plain"})
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("GCE_METADATA_IP", server.address)
    with pytest.raises(FileIOError, match="more than the"):
        google_signer(GoogleSettings())
    assert server.sent < 64 << 20


@pytest.mark.parametrize("of", ["amazon", "google", "azure"])
def test_a_machine_is_asked_for_its_credentials_by_no_proxy(
    server, monkeypatch, tmp_path, without_keys, of
):
    """It is asked without TLS: a proxy, and who is before it, would get them, or give others."""
    proxy = Server()
    monkeypatch.setenv("http_proxy", f"http://{proxy.address}")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://{server.address}/")
    for name in ("GCE_METADATA_IP", "GCE_METADATA_HOST"):
        monkeypatch.setenv(name, server.address)
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://{server.address}/token")
    monkeypatch.setenv("IDENTITY_HEADER", "x")
    server.answer = proxy.answer = lambda *_: [said(404, b"no")]
    asked = {
        "amazon": lambda: FileIO({**without_keys, "s3.endpoint": "https://127.0.0.1:1"}).size(
            "s3://b/x"
        ),
        "google": lambda: google_signer(GoogleSettings())(
            requests.Request("GET", "https://a.invalid/c").prepare()
        ),
        "azure": lambda: azure_signer(AzureSettings(account="a", managed=True))(
            requests.Request("GET", "https://a.invalid/c").prepare()
        ),
    }
    with pytest.raises(IcecombError):
        asked[of]()
    proxy.close()
    assert server.asked
    assert not proxy.asked


def test_a_stated_length_takes_no_memory(store, server, monkeypatch):
    monkeypatch.setattr(rest_client, "ANSWER_S", 1.0)
    kind, io = store
    head = said(200, b"x" * 10, **{"Content-Length": 10**12})
    server.answer = lambda *_: [head]
    for ask in (io.read, lambda place: io.open_input(place, 100).read(10)):
        with pytest.raises(IcecombError):
            ask(f"{kind}://b/p/x")


@pytest.mark.parametrize("kind", ["gs", "abfs"])
def test_what_is_encoded_unasked_is_not_believed(server, kind):
    server.answer = lambda *_: [said(200, b"abc", Content_Encoding="gzip")]
    with contextlib.closing(FileIO(settings(kind, server.address))) as io:
        with pytest.raises(FileIOError, match="encoding"):
            list(io.list(f"{kind}://b/p"))
        assert io.read(f"{kind}://b/p/x") == b"abc"


def test_interim_responses_end(store, server):
    kind, io = store
    server.answer = lambda *_: itertools.repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 4000)
    with pytest.raises(FileIOError):
        io.exists(f"{kind}://b/p/x")
    assert server.sent < 64 << 20


def test_a_byte_now_and_then_is_no_answer(store, server, monkeypatch):
    def slow() -> Iterator[bytes]:
        yield said(200, **{"Content-Length": 1000})
        while True:
            time.sleep(0.1)
            yield b"x"

    monkeypatch.setattr(rest_client, "ANSWER_S", 1.0)
    kind, io = store
    server.answer = lambda *_: slow()
    with pytest.raises(FileIOError):
        io.read(f"{kind}://b/p/x")
    assert server.sent < 500


def page_of(kind: str, listed: str | None, after: str) -> bytes:
    """A page with one name or none, and the token of the next."""
    if kind == "gs":
        item = {"name": listed, "size": "1", "updated": "2024-01-01T00:00:00Z"}
        return js({"kind": "k", "items": [item] if listed else [], "nextPageToken": after})
    if kind == "s3":
        found = S3_LIST.format(
            f"<Key>{listed}</Key><Size>1</Size><LastModified>2024-01-01T00:00:00Z</LastModified>"
        )
        following = f"<NextContinuationToken>{after}</NextContinuationToken>"
        return xml(
            "ListBucketResult",
            f"{found if listed else '<Name>b</Name>'}<IsTruncated>true</IsTruncated>{following}",
        )
    about = f"<Properties><Last-Modified>{DATE}</Last-Modified></Properties>"
    blob = BLOB.format(about).replace("p/x", listed) if listed else ""
    return xml("EnumerationResults", f"{blob}<NextMarker>{after}</NextMarker>")


def test_a_list_whose_pages_repeat_ends(store, server):
    def page(_: str, target: str) -> Iterator[bytes]:
        after = "B" if any(f"{name}=A" in target for name in ("Token", "token", "marker")) else "A"
        yield page_of(kind, f"p/x{after}", after)

    kind, io = store
    server.answer = page
    with pytest.raises(FileIOError, match="start of the next page"):
        list(io.list(f"{kind}://b/p"))
    assert len(server.asked) < 5


@pytest.mark.parametrize("listed", [None, "p/x"])
def test_a_list_that_goes_on_without_new_names_ends(store, server, monkeypatch, listed):
    monkeypatch.setattr(client, "IDLE_PAGES", 20)
    kind, io = store
    server.answer = lambda *_: [page_of(kind, listed, f"T{len(server.asked)}")]
    with pytest.raises(FileIOError, match="20 pages one after another without new names"):
        list(io.list(f"{kind}://b/p"))
    assert len(server.asked) < 60


def test_a_list_whose_next_page_has_too_long_a_name_ends(store, server):
    kind, io = store
    server.answer = lambda *_: [page_of(kind, None, f"{'T' * 100_000}{len(server.asked)}")]
    with pytest.raises(FileIOError, match="start of the next page"):
        list(io.list(f"{kind}://b/p"))
    assert len(server.asked) < 5


@pytest.mark.parametrize("body", [b"<a b=''/>" * (3 << 20), b"[" + b"{}," * (11 << 20) + b"1]"])
def test_a_page_has_at_most_so_many_elements(store, server, body):
    kind, io = store
    server.answer = lambda *_: [said(200, body)]
    with pytest.raises(FileIOError, match="more elements than any"):
        list(io.list(f"{kind}://b/p"))


def test_a_rewrite_that_is_never_done_ends(server):
    def answer(_: str, target: str) -> Iterator[bytes]:
        if "rewriteTo" in target:
            yield js({"kind": "k", "done": False, "rewriteToken": str(len(server.asked))})
        elif target.partition("?")[0].endswith("x"):
            yield js({"name": "p/x", "size": "1", "updated": "2024-01-01T00:00:00Z"})
        else:
            yield js({"error": {"message": "No such object"}}, 404)

    server.answer = answer
    io = FileIO(settings("gs", server.address))
    with contextlib.closing(io), pytest.raises(FileIOError, match="has not finished"):
        io.rename("gs://b/p/x", "gs://b/p/y")


def test_a_copy_that_stays_pending_ends(server, monkeypatch):
    monkeypatch.setattr(azure, "PENDING_S", 0.1)
    server.answer = lambda method, _: [
        said(202 if method == "PUT" else 200, x_ms_copy_status="pending")
    ]
    io = FileIO(settings("abfs", server.address))
    with contextlib.closing(io), pytest.raises(FileIOError, match="it is pending"):
        io.rename("abfs://b/p/x", "abfs://b/p/y")


def test_a_copy_whose_progress_does_not_grow_ends(server, monkeypatch):
    monkeypatch.setattr(azure, "PENDING_S", 0.1)
    server.answer = lambda method, _: [
        said(
            202 if method == "PUT" else 200,
            b"" if method == "PUT" else b"0123456789"[: 10 if method == "GET" else 0],
            x_ms_copy_status="pending",
            x_ms_copy_progress=f"{11 + len(server.asked)}/1000000",
        )
    ]
    io = FileIO(settings("abfs", server.address))
    with contextlib.closing(io), pytest.raises(FileIOError, match="it is pending"):
        io.rename("abfs://b/p/x", "abfs://b/p/y")


@pytest.mark.parametrize("step", [1, 1000])
def test_an_upload_that_grows_by_little_ends(server, step):
    def answer(method: str, _: str) -> list[bytes]:
        if method == "GET":
            return [js({"error": {"message": "No such object"}}, 404)]
        if method != "PUT":
            return [said(200, Location="http://a/?upload_id=u")]
        return [said(308, Range=f"bytes=0-{step * len(server.asked)}")]

    server.answer = answer
    io = FileIO({**settings("gs", server.address), "io.object-store.max-attempts": "3"})
    with (
        contextlib.closing(io),
        pytest.raises(FileIOError, match="not all of it arrived"),
        io.create_stream("gs://b/x") as out,
    ):
        out.write(b"x" * (client.PART * 2))
    assert len(server.asked) < 20


OTHERS = {
    "nothing": {"gs": js({"error": {"message": "No such object"}}, 404)},
    "another": {
        "gs": js({"name": "p/y", "size": "0", "updated": "2024-01-01T00:00:00Z"}),
        "abfs": said(200),
        "s3": said(200),
    },
}


@pytest.mark.parametrize("there", OTHERS)
@pytest.mark.parametrize("copied", ["success", "failed"])
def test_nothing_is_deleted_after_a_copy_that_is_not_there(store, server, there, copied):
    kind, io = store
    done = {
        "gs": js({"done": True, "resource": {"name": "p/y"}}),
        "abfs": said(202, x_ms_copy_status=copied),
        "s3": xml(
            "R",
            "<UploadId>u</UploadId><ETag>e</ETag><CopyPartResult><ETag>e</ETag></CopyPartResult>",
        ),
    }
    missing = said(404, b"<Error><Code>NoSuchKey</Code></Error>", x_ms_error_code="BlobNotFound")
    source = {"gs": js({"name": "p/x", "size": "9", "updated": "2024-01-01T00:00:00Z"})}

    def answer(method: str, target: str) -> list[bytes]:
        if method in {"PUT", "POST"} or "uploadId=" in target:
            return [done[kind]]
        if method == "DELETE":
            return [said(204)]
        is_source = target.partition("?")[0].endswith("x")
        found = (
            source.get(kind, said(200, **{"Content-Length": 9}))
            if is_source
            else (OTHERS[there].get(kind, missing))
        )
        return [found.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" if method == "HEAD" else found]

    server.answer = answer
    with pytest.raises(FileIOError):
        io.rename(f"{kind}://b/p/x", f"{kind}://b/p/y")
    deleted = [each for each in server.asked if each.startswith("DELETE")]
    assert not any("uploadId" not in each for each in deleted)


def test_what_a_server_says_is_printable(store, server):
    kind, io = store
    text = "no \x9b31m\x9d0;owned\x9c"
    server.answer = lambda *_: [
        js({"error": {"message": text}}, 403)
        if kind == "gs"
        else said(403, f"<Error><Code>X\x9b</Code><Message>{text}</Message></Error>".encode())
    ]
    with pytest.raises(FileIOError, match="31m") as caught:
        io.read(f"{kind}://b/p/x")
    assert caught.value.message.isprintable()


@pytest.mark.parametrize("status", [200, 403])
@pytest.mark.parametrize("coding", ["utf-8", "utf-16"])
def test_entities_are_not_expanded(server, status, coding):
    def document(root: str, inner: str) -> bytes:
        declared = f'<!DOCTYPE r [<!ENTITY a "{"x" * 65536}">]>'
        version = f'<?xml version="1.0" encoding="{coding}"?>'
        return said(status, f"{version}{declared}<{root}>{inner}</{root}>".encode(coding))

    inner = f"<Name>{'&a;' * 500}</Name><Code>C</Code><Message>&a;</Message>"
    for kind, root in (("abfs", "EnumerationResults"), ("s3", "ListBucketResult")):
        answer = document(root if status == 200 else "Error", inner)
        server.answer = lambda *_, answer=answer: [answer]
        io = FileIO(settings(kind, server.address))
        with contextlib.closing(io):
            with contextlib.suppress(FileIOError):
                io.exists(f"{kind}://b/p")  # imports libraries
            tracemalloc.start()
            with pytest.raises(FileIOError, match=r"has no|403") as caught:
                list(io.list(f"{kind}://b/p"))
            _, most = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert most < 16 << 20
        assert "xxx" not in caught.value.message


def test_a_list_of_azure_may_begin_with_a_byte_order_mark(server):
    listed = "\ufeff<?xml version='1.0' encoding='utf-8'?><EnumerationResults></EnumerationResults>"
    server.answer = lambda method, _: [
        said(404, x_ms_error_code="BlobNotFound")
        if method == "HEAD"
        else said(200, listed.encode())
    ]
    with contextlib.closing(FileIO(settings("abfs", server.address))) as io:
        assert not list(io.list("abfs://b/p"))


def test_a_refused_deletion_without_a_key_is_an_error_of_icecomb(server):
    server.answer = lambda *_: [xml("DeleteResult", "<Error><Code>X</Code></Error>")]
    io = FileIO(settings("s3", server.address))
    with contextlib.closing(io), pytest.raises(FileIOError, match="cannot be read"):
        io.delete(["s3://b/x", "s3://b/y"])


def deleted(*keys: str, refused: Iterable[str] = ()) -> bytes:
    found = "".join(f"<Deleted><Key>{key}</Key></Deleted>" for key in keys)
    busy = "<Code>SlowDown</Code><Message>m</Message>"
    return xml(
        "DeleteResult",
        found + "".join(f"<Error><Key>{key}</Key>{busy}</Error>" for key in refused),
    )


UNPROVEN = {
    "empty": said(200),
    "page": said(200, b"<html><body>Who are you?</body></html>"),
    "of nothing": deleted(),
    "of others": deleted("a", "b", "v"),
    "of some": deleted("a"),
    "refused to others": deleted("a", "b", refused=["v"]),
}


@pytest.mark.parametrize("answer", UNPROVEN)
def test_of_many_objects_exactly_the_requested_ones_are_told_as_deleted(server, answer):
    server.answer = lambda *_: [UNPROVEN[answer]]
    two = {**settings("s3", server.address), "io.object-store.max-attempts": "2"}
    with contextlib.closing(FileIO(two)) as io:
        with pytest.raises(FileIOError, match="requested keys"):
            io.delete(["s3://bucket/a", "s3://bucket/b"])
        assert len(server.asked) == 2
        assert not any(b"<Key>v<" in each for each in server.bodies)
        server.answer = lambda *_: [deleted("a", "b")]
        io.delete(["s3://bucket/a", "s3://bucket/b"])
        busy = iter([deleted("a", refused=["b"]), deleted("b")])
        server.answer = lambda *_: [next(busy)]
        io.delete(["s3://bucket/a", "s3://bucket/b"])


def test_a_page_does_not_tell_that_an_object_was_deleted(server):
    page = b"<html>Who are you?</html>"
    server.answer = lambda *_: [
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(page), page)
    ]
    for kind in STORES:
        io = FileIO(settings(kind, server.address))
        with (
            contextlib.closing(io),
            pytest.raises(FileIOError, match=r"the response (has no|cannot)"),
        ):
            io.delete([f"{kind}://b/x"])
