"""A place on the shared HDFS, and a proxy in front of its web interfaces."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.hdfs import file_system
from tests.format.hdfs.memory_hdfs import MemoryHdfs
from tests.peers.webhdfs_proxy import WebHdfsProxy


@pytest.fixture
def proxy(hdfs: Any) -> Iterator[WebHdfsProxy]:
    """Counts the calls, and does to them what networks do."""
    proxy = WebHdfsProxy(f"127.0.0.1:{hdfs.http['nn1']}")
    yield proxy
    proxy.close()


@pytest.fixture
def proxied(hdfs: Any, proxy: WebHdfsProxy) -> dict[str, str]:
    """How `alice` reaches the cluster through the proxy."""
    settings: dict[str, str] = hdfs.client_settings
    return {**settings, "dfs.namenode.http-address": proxy.address, "hdfs.user": "alice"}


@pytest.fixture
def place(hdfs: Any) -> str:
    """A folder of this test."""
    return f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def memory_server() -> Iterator[MemoryHdfs]:
    server = MemoryHdfs()
    yield server
    server.close()


@pytest.fixture
def memory(memory_server: MemoryHdfs) -> MemoryHdfs:
    """A cluster in memory, with nothing in it."""
    memory_server.clear()
    return memory_server


@pytest.fixture
def memory_proxy(memory: MemoryHdfs) -> Iterator[WebHdfsProxy]:
    """Does to the calls of `memory_io` what networks do."""
    proxy = WebHdfsProxy(memory.address)
    yield proxy
    proxy.close()


@pytest.fixture
def memory_settings(memory_proxy: WebHdfsProxy, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """How `alice` reaches the cluster in memory, as `hdfs://lake`."""
    monkeypatch.setattr(file_system.time, "sleep", lambda _: None)
    settings = {"fs.defaultFS": "hdfs://lake", "dfs.namenode.http-address": memory_proxy.address}
    return {**settings, "hdfs.user": "alice", "dfs.webhdfs.socket.read-timeout": "60s"}


@pytest.fixture
def memory_io(memory_settings: dict[str, str]) -> Iterator[FileIO]:
    made = FileIO(memory_settings)
    yield made
    made.close()
