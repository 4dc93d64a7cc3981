"""What the name nodes of a cluster say of themselves, each asked by itself."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icecomb.format.errors import FileIOError

if TYPE_CHECKING:
    from icecomb.format.storage.hdfs.web_hdfs import WebHdfs


@dataclass(frozen=True, slots=True)
class NameNode:
    """One name node, as its metrics (`/jmx`) show it.

    Attributes:
        address: `host:port` of its HTTP interface.
        state: `active`, `standby` or `observer`; empty if it does not say.
        problem: Why nothing is known; empty if it answered.
        seconds: How long it took to answer.
        safe_mode: Whether it is read-only for the time being.
        live_data_nodes: How many there are; None if it does not say.
        free_bytes: On all data nodes; None if it does not say.
    """

    address: str
    state: str
    problem: str
    seconds: float
    safe_mode: bool = False
    live_data_nodes: int | None = None
    free_bytes: int | None = None


def name_nodes(web: WebHdfs) -> list[NameNode]:
    """All of a cluster, in the order of its configuration."""
    return [_ask(web, address) for address in web.name_nodes]


def _ask(web: WebHdfs, address: str) -> NameNode:
    started = time.perf_counter()
    try:
        status = web.metrics(address, "NameNodeStatus")
        seconds = time.perf_counter() - started
        system = web.metrics(address, "FSNamesystemState")
    except FileIOError as error:
        return NameNode(address, "", error.message, time.perf_counter() - started)
    return NameNode(
        address,
        str(status.get("State", "")),
        "",
        seconds,
        system.get("FSState") == "safeMode",
        _count(system, "NumLiveDataNodes"),
        _count(system, "CapacityRemaining"),
    )


def _count(bean: dict[str, Any], name: str) -> int | None:
    value = bean.get(name)
    return value if isinstance(value, int) else None
