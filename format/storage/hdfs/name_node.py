"""Status of the name nodes of a cluster, as each one reports it.

Only the active one knows everything. An observer serves reads from its possibly stale state, as a
standby may (`dfs.ha.allow.stale.reads`), and WebHDFS cannot demand a minimum state: a file that
such a node does not have may exist and be committed.
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
"""The metrics bean that contains the state."""
_TRUSTED_S: Final = 10.0


class ActiveNameNodes:
    """The name nodes known to be active, by their own reports of the last ten seconds.

    The function `ask` returns a name node's state, given `http://host:port`; empty if unknown.
    """

    def __init__(self, ask: Callable[[str], str]) -> None:
        self._ask = ask
        self._trusted: dict[str, float] = {}

    def has(self, origin: str) -> bool:
        """Return whether a name node is active, or reports no state and refuses no writes."""
        trusted = self._trusted  # what was asked before a `discard` is discarded, too
        until = trusted.get(origin)
        if until is None or time.monotonic() > until:
            trusted.pop(origin, None)
            if self._ask(origin) not in {"active", ""}:
                return False
            trusted[origin] = time.monotonic() + _TRUSTED_S
        return True

    def discard(self) -> None:
        """Discard the cached states, so that the next call asks again."""
        self._trusted = {}


@dataclass(frozen=True, slots=True)
class NameNode:
    """The status of one name node, from its metrics (`/jmx`).

    Attributes:
        address: `host:port` of its HTTP interface.
        state: `active`, `standby` or `observer`; empty if not reported.
        problem: Reason why nothing is known; empty if it responded.
        seconds: Response time.
        safe_mode: Whether it is read-only at the moment.
        live_data_nodes: Number of live data nodes; None if not reported.
        free_bytes: Free bytes on all data nodes; None if not reported.
    """

    address: str
    state: str
    problem: str
    seconds: float
    safe_mode: bool = False
    live_data_nodes: int | None = None
    free_bytes: int | None = None


def name_nodes(web: WebHdfs) -> list[NameNode]:
    """Return the status of all name nodes of a cluster, in configuration order."""
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
