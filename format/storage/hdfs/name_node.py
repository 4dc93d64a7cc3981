"""What the name nodes of a cluster say of themselves, each asked by itself.

Only the active one knows everything. An observer answers what only looks from where it is by then,
as a standby may (`dfs.ha.allow.stale.reads`), and over WebHDFS nobody can say since when that has
to be: what such a one does not have may be there, and committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import FileIOError

if TYPE_CHECKING:
    from icecomb.format.storage.hdfs.web_hdfs import WebHdfs

NAME_NODE_STATUS: Final = "NameNodeStatus"
"""The bean of its metrics that has its state."""
_TRUSTED_S: Final = 10.0


class ActiveNameNodes:
    """Which of several may be believed, as they said themselves some seconds ago.

    Args:
        ask: The state of one, by `http://host:port`; empty where it does not say.
    """

    def __init__(self, ask: Callable[[str], str]) -> None:
        self._ask = ask
        self._trusted: dict[str, float] = {}

    def has(self, origin: str) -> bool:
        """Whether it is active, or does not say: then only its answers tell."""
        until = self._trusted.get(origin)
        if until is None or time.monotonic() > until:
            self._trusted.pop(origin, None)
            if self._ask(origin) not in {"active", ""}:
                return False
            self._trusted[origin] = time.monotonic() + _TRUSTED_S
        return True

    def forget(self) -> None:
        """Ask them again before the next call."""
        self._trusted.clear()


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
        status = web.metrics(address, NAME_NODE_STATUS)
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
