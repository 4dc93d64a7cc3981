"""What name nodes and data nodes may ask of a session, and what it tells each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyhdfs
import pytest

from icecomb.format.storage.hdfs.address import resolve_location
from icecomb.format.storage.hdfs.session import HdfsSession
from tests.peers.listener import Listener

BYTES = {"Content-Type": "application/octet-stream"}
COOKIE = {"Set-Cookie": "hadoop.auth=alice; Path=/; HttpOnly"}


@pytest.fixture
def node() -> Iterator[Listener]:
    found = Listener()
    yield found
    found.close()


@pytest.fixture
def other() -> Iterator[Listener]:
    found = Listener(lambda *_: (200, {**BYTES, **COOKIE}, b"private"))
    yield found
    found.close()


@pytest.fixture
def session(node: Listener) -> Iterator[HdfsSession]:
    found = HdfsSession({}, resolve_location(f"webhdfs://{node.address}/x", {}))
    yield found
    found.close()


def test_a_name_node_sends_nobody_elsewhere_who_asks_for_its_metrics(
    session: HdfsSession, node: Listener, other: Listener
) -> None:
    node.answer = lambda *_: (302, {"Location": f"http://{other.address}/jmx"}, b"")
    assert session.metrics(f"http://{node.address}", "NameNodeStatus") == {}
    session.requests.get(f"http://{node.address}/webhdfs/v1/x")
    assert other.requests == []


def test_cookies_of_a_name_node_are_shown_to_it_alone(
    session: HdfsSession, node: Listener, other: Listener
) -> None:
    node.answer = lambda *_: (200, COOKIE, b"{}")
    for _ in range(2):
        session.metrics(f"http://{node.address}", "NameNodeStatus")
        session.download(f"http://{other.address}/x", 7)  # cookies know no ports
    assert "hadoop.auth" in node.requests[-1]
    assert [text for text in other.requests if "Cookie" in text] == []


def test_a_data_node_sends_nobody_elsewhere(
    session: HdfsSession, node: Listener, other: Listener
) -> None:
    node.answer = lambda *_: (302, {"Location": f"http://{other.address}/private"}, b"")
    with pytest.raises(pyhdfs.HdfsException, match="Expected JSON"):
        session.download(f"http://{node.address}/x", 7)
    assert other.requests == []


def test_a_login_is_for_name_nodes_alone(node: Listener, other: Listener) -> None:
    """Data nodes know who reads by the token in the URL that a name node made."""
    kerberos: Any = {"hadoop.security.authentication": "kerberos"}
    session = HdfsSession(kerberos, resolve_location(f"webhdfs://{node.address}/x", {}))
    other.answer = lambda *_: (401, {"WWW-Authenticate": "Negotiate"}, b"")
    with pytest.raises(pyhdfs.HdfsException, match="Expected JSON"):
        session.download(f"http://{other.address}/x", 7)
    session.close()
    assert len(other.requests) == 1
