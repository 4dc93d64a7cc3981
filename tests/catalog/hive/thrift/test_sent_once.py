"""Calls whose answer is lost: what only reads is sent again, what changes something never is."""

from __future__ import annotations

from typing import Any

import pytest

from icecomb.catalog.hive.thrift.calls import Calls
from icecomb.catalog.hive.thrift.failure import ReplyLostError


class Silent(Calls):
    """Loses the answer of every call."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def send(self, method: str, send: Any) -> Any:
        self.sent.append(method)
        raise ReplyLostError(f"{method}: {send}")


def test_what_only_reads_is_sent_a_second_time():
    calls = Silent()
    with pytest.raises(ReplyLostError):
        calls.read("get_table", "db", "t")
    assert calls.sent == ["get_table", "get_table"]


def test_what_changes_something_is_sent_once():
    calls = Silent()
    with pytest.raises(ReplyLostError):
        calls.write("unlock", 7)
    with pytest.raises(ReplyLostError):
        calls.write_bytes("alter_table_with_environment_context", b"")
    assert calls.sent == ["unlock", "alter_table_with_environment_context"]
