"""A place on the shared HDFS, and a proxy in front of its web interfaces."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

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
