"""What may come before, between and after the parts of a body is bounded in bytes, and so in time.

So is the time that a server takes for what is sent to it.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import product
from typing import Any

import pytest
import urllib3
from urllib3.exceptions import HTTPError

from icecomb.format.errors import FileIOError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.hdfs.failure import HdfsDataLostError
from icecomb.format.storage.hdfs.upload import HdfsUpload
from icecomb.format.storage.time_limit import timed_pools
from tests.rings import sampled

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
STATUS = (
    b'{"FileStatus":{"pathSuffix":"","type":"FILE","length":7,"modificationTime":1,"fileId":1}}'
)
PART = b"%x\r\n%s\r\n" % (len(STATUS), STATUS)


@contextmanager
def endless(start: bytes, again: bytes, sent: list[int]) -> Iterator[str]:
    """A server that answers so, and never ends."""

    def serve() -> None:
        while True:
            with suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(start)
                    while again:
                        connection.sendall(again)
                        sent[0] += len(again)
            if server.fileno() < 0:
                return

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("start", "again"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1000),
        (HEAD, b"X-More: %s\r\n" % (b"x" * 60_000)),
        (CHUNKED, b"0" * (1 << 16)),
        (CHUNKED + b"1;", b"x" * (1 << 16)),
        (CHUNKED, b"1;%s\r\n \r\n" % (b"x" * 60_000)),
        (CHUNKED + PART + b"0\r\n", b"X-More: after it\r\n" * 1000),
        (CHUNKED + PART, PART * 1000),
        (HEAD + b"\r\n", STATUS * 1000),
        (CHUNKED + b"-1\r\n", b" " * (1 << 20)),
    ],
    ids=["100", "headers", "size", "extension", "chunks", "trailers", "parts", "body", "negative"],
)
def test_an_answer_without_an_end_is_an_error(start: bytes, again: bytes) -> None:
    sent = [0]
    with endless(start, again, sent) as address:
        files = FileIO({"dfs.client.failover.max.attempts": "1"})
        with pytest.raises(FileIOError, match=r"Cannot access webhdfs://"):
            files.size(f"webhdfs://{address}/x")
        files.close()
    assert sent[0] < 64 << 20


@pytest.mark.parametrize(
    "end", ["Content-Length: -1", "Transfer-Encoding: identity", "Transfer-Encoding: gzip, chunked"]
)
def test_a_file_of_hdfs_whose_end_is_not_told_is_not_believed(end: str) -> None:
    body = f"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n{end}\r\n\r\nabcde"

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                with connection:
                    asked = connection.recv(1 << 16)
                    there = f"Location: http://{address}/node\r\nContent-Length: 0\r\n\r\n"
                    named = f"HTTP/1.1 307 X\r\n{there}"
                    at_node = asked.startswith(b"GET /node")
                    connection.sendall((body if at_node else named).encode())

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=serve, daemon=True).start()
        files = FileIO({"dfs.client.failover.max.attempts": "1"})
        with pytest.raises(FileIOError, match=r"Cannot read webhdfs://"):
            files.read(f"webhdfs://{address}/x")
        files.close()
        server.shutdown(socket.SHUT_RDWR)


@contextmanager
def slow(taken: list[int]) -> Iterator[str]:
    """A server that takes some bytes of a file at a time."""

    def take(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            while not over.wait(0.1) and (found := connection.recv(1 << 15)):
                taken[0] += len(found)

    def serve() -> None:
        with suppress(OSError):
            while True:
                connection, _ = server.accept()
                threading.Thread(target=take, args=(connection,), daemon=True).start()

    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
        address = f"127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=serve, daemon=True).start()
        yield address
        over.set()
        server.shutdown(socket.SHUT_RDWR)


SLOW_BYTES = 16 << 20
"""More than there is room for on the way: what is taken after that makes room for more."""


def test_a_data_node_that_takes_few_bytes_at_a_time_keeps_no_write_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect = socket.create_connection

    def connected(*where: Any, **options: Any) -> socket.socket:
        """Have less on the way, as a remote node may: what makes room for more is less then."""
        found = connect(*where, **options)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
        return found

    monkeypatch.setattr(socket, "create_connection", connected)
    taken = [0]
    with slow(taken) as address:
        upload = HdfsUpload(("http", address, "/node"), "hdfs://c/x", 1.0, None)
        with closing(upload), pytest.raises(HdfsDataLostError, match="timed out"):
            upload.write(bytes(SLOW_BYTES))
    assert taken[0] < SLOW_BYTES


def test_a_store_that_takes_few_bytes_at_a_time_keeps_no_write_waiting() -> None:
    taken = [0]
    with slow(taken) as address, urllib3.PoolManager() as pools:
        pools.pool_classes_by_scheme = timed_pools()
        blocks = (bytes(1 << 8) for _ in range(SLOW_BYTES >> 8))
        with pytest.raises(HTTPError, match="timed out"):
            pools.request("POST", f"http://{address}/x", body=blocks, timeout=1, retries=False)
    assert taken[0] < SLOW_BYTES


@pytest.mark.parametrize(
    ("kind", "interim"),
    sampled(list(product(["webhdfs", "s3", "gs"], ["102 Processing", "103 Early Hints"])), keep=3),
)
def test_an_interim_response_is_not_taken_for_that_to_the_request(kind: str, interim: str) -> None:
    """The one that follows it would be taken for the response to the next request."""
    sizes = {"a": 11, "b": 16}

    def answer(connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as asked:
            while line := asked.readline():
                while asked.readline() != b"\r\n":
                    pass
                connection.sendall(f"HTTP/1.1 {interim}\r\nLink: </style>\r\n\r\n".encode())
                time.sleep(0.2)
                name = line.split()[1].partition(b"?")[0].decode()[-1]
                said = {"name": f"t/{name}", "updated": "2026-01-01T00:00:00Z", "size": sizes[name]}
                body = json.dumps(said).encode()
                if kind == "webhdfs":
                    body = STATUS.replace(b'"length":7', b'"length":%d' % sizes[name])
                size = sizes[name] if kind == "s3" else len(body)
                connection.sendall(
                    HEAD + b"Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nETag: x\r\n"
                    b"Content-Length: %d\r\n\r\n" % size + (b"" if kind == "s3" else body)
                )

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=server.accept()[:1], daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        threading.Thread(target=serve, daemon=True).start()
        files = FileIO(
            {
                "s3.endpoint": f"http://{address}",
                "s3.access-key-id": "id",
                "s3.secret-access-key": "secret",
                "gcs.service.host": f"http://{address}",
                "gcs.no-auth": "true",
            }
        )
        folder = f"webhdfs://{address}/t" if kind == "webhdfs" else f"{kind}://bucket/t"
        found = [files.size(f"{folder}/{name}") for name in "abab"]
        files.close()
        server.shutdown(socket.SHUT_RDWR)
    assert found == [11, 16, 11, 16]
