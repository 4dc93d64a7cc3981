"""The data nodes that failed lately, of which the name node is asked for others.

A name node sends clients to a dead data node until it has missed its heartbeats for ten minutes. Of
the two names of a data node a redirection has the HTTP interface, while `excludedatanodes` is
compared with the address of data transfers.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

_AVOIDED_S: Final = 600.0
"""As `dfs.client.write.exclude.nodes.cache.expiry.interval.millis` of Hadoop's client."""


class FailedDataNodes:
    """The data nodes of one cluster that failed in the last ten minutes.

    The function `ask` returns the name node's bean `NameNodeInfo`; empty if there is none.
    """

    def __init__(self, ask: Callable[[], dict[str, Any]]) -> None:
        self._ask = ask
        self._failed: dict[str, tuple[str, float]] = {}

    def add(self, node: str) -> None:
        """Note that a data node failed, given as `host:port` of its HTTP interface."""
        known, _ = self._failed.get(node, ("", 0.0))
        address = known or transfer_address(node, self._ask())
        self._failed[node] = (address, time.monotonic() + _AVOIDED_S)

    def discard(self, node: str) -> None:
        """Note that a data node works."""
        self._failed.pop(node, None)

    def addresses(self) -> list[str]:
        """Return the addresses to exclude, as far as the name node knows them."""
        now = time.monotonic()
        return [where for where, until in [*self._failed.values()] if where and until > now]


def transfer_address(node: str, name_node_info: dict[str, Any]) -> str:
    """Return `address:port` of a data node's transfers; empty if the name node knows none.

    Args:
        node: `host:port` of its HTTP interface.
        name_node_info: The bean `NameNodeInfo` of a name node or router.
    """
    try:
        nodes = json.loads(name_node_info.get("LiveNodes", "{}"))
        host, _, port = node.rpartition(":")
        for name, found in nodes.items():
            webs = {found.get("infoAddr", ""), found.get("infoSecureAddr", "")}
            if node in webs or (
                name.rpartition(":")[0] == host and port in {web.rpartition(":")[2] for web in webs}
            ):
                return str(found["xferaddr"])
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # a name node of another version says it otherwise
    return ""
