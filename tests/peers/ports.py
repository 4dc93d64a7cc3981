"""Ports of 127.0.0.1 for servers that must be told theirs."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LOWEST = 10_240
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_given: set[int] = set()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different, each given only once by this process.

    They lie below those the kernel gives to outgoing connections: one of those may be taken by any
    connection of this machine before the server has come up.
    """
    ephemeral = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    found: list[int] = []
    for port in random.SystemRandom().sample(range(_LOWEST, ephemeral), ephemeral - _LOWEST):
        if len(found) == count:
            break
        if port not in _given and _is_free(port):
            found.append(port)
    _given.update(found)
    return found


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that refuses connections and that nobody else can take meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
