"""hdfs-native awaits a silent node without end; icecomb does not."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

from icecomb.format.errors import FileIOError, IcecombError
from icecomb.format.process import user_name
from icecomb.format.storage.hdfs.address import resolve_location
from icecomb.format.storage.hdfs.native import NativeHdfs


@pytest.fixture
def port() -> Iterator[int]:
    """A port that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def client(port: int, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(NativeHdfs, "active_name_node", lambda _: "")  # asked over WebHDFS
    place = f"hdfs://127.0.0.1:{port}"
    properties = {
        "hdfs.user": user_name(),
        "dfs.webhdfs.socket.connect-timeout": "100",
        "dfs.webhdfs.socket.read-timeout": "200ms",
        "dfs.namenode.http-address": "127.0.0.1:1",
    }
    return NativeHdfs(resolve_location(f"{place}/t", properties), properties)


def test_a_silent_name_node_is_an_error_that_names_it(client: Any, port: int) -> None:
    begun = time.monotonic()
    with pytest.raises(FileIOError, match=rf"no answer within 0\.3 s.*127\.0\.0\.1:{port}") as said:
        client.read("/t/a", "hdfs://t/a")
    assert "dfs.webhdfs.socket.read-timeout" in said.value.hint
    with pytest.raises(IcecombError, match=f"{port}"), client.upload("/t/a", "hdfs://t/a"):
        pass
    assert time.monotonic() - begun < 30


def test_a_panic_of_the_library_is_an_error_of_icecomb(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no `Exception` in Python, and would end what goes on with the next table."""
    monkeypatch.setattr(NativeHdfs, "active_name_node", lambda _: "")
    # a step of the login that hdfs-native does not know
    head, step = bytes.fromhex("08dfffffff0f1000"), bytes.fromhex("104d")
    said = bytes([len(head)]) + head + bytes([len(step)]) + step
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            # more than once: the library calls again where its first call was cut
            while True:
                plug, _ = listener.accept()
                with plug, suppress(OSError):
                    plug.recv(1 << 10)
                    plug.sendall(len(said).to_bytes(4, "big") + said)
                    while plug.recv(1 << 10):
                        pass

        Thread(target=answer, daemon=True).start()
        properties = {
            "fs.defaultFS": f"hdfs://127.0.0.1:{listener.getsockname()[1]}",
            "dfs.namenode.http-address": "127.0.0.1:1",
            "hadoop.security.authentication": "kerberos",
            "ipc.client.fallback-to-simple-auth-allowed": "true",
            "dfs.webhdfs.socket.read-timeout": "10s",
        }
        client = NativeHdfs(resolve_location("/t", properties), properties)
        with pytest.raises(FileIOError, match="Cannot read hdfs://t/a") as failure:
            client.read("/t/a", "hdfs://t/a")
    assert "no answer" not in str(failure.value)
