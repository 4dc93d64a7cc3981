"""One client's knowledge about its metastores."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

_SUSPECT_S: Final = 60.0
"""Seconds for which an address that failed is tried after the others."""


class ValueCheck(Enum):
    """A metastore's handling of an alter that names the parameter value it expects to replace.

    ``ATOMIC``: it compares and replaces in one statement (HIVE-28121), so of two concurrent alters
    one is refused. ``COMPARED``: it compares in a transaction (only HIVE-26882): on MySQL and
    MariaDB two concurrent alters may both succeed. ``REFUSED``: it refuses all of them, as it must
    without direct SQL. ``IGNORED``: it ignores the expectation. ``UNTRIED``: it did not let it be
    tried, so it is not relied on. ``AWAY``: it went away while it was tried, likewise.
    """

    ATOMIC = "atomic"
    COMPARED = "compared"
    REFUSED = "refused"
    IGNORED = "ignored"
    UNTRIED = "untried"
    AWAY = "away"

    @property
    def holds(self) -> bool:
        """Whether an outdated alter is refused, unless it is concurrent."""
        return self in {ValueCheck.ATOMIC, ValueCheck.COMPARED}


@dataclass(slots=True)
class KnownServer:
    """One server, from one failure to the next.

    Attributes:
        guard: Held by the thread that probes this server; other threads wait for it.
        check: The handling of expected values; None if not probed yet.
        lock_expiry_s: Seconds without a heartbeat after which a lock expires; None if unknown.
        lock_expiry_asked: Whether the server was asked for `lock_expiry_s`.
    """

    guard: threading.RLock = field(default_factory=threading.RLock)
    check: ValueCheck | None = None
    lock_expiry_s: float | None = None
    lock_expiry_asked: bool = False


class KnownServers:
    """The servers of one client; used by all of its threads.

    Attributes:
        embedded: Addresses that were found to be embedded metastores of this user.
    """

    def __init__(self) -> None:
        self.embedded: set[str] = set()
        self._pid = os.getpid()
        self._guard = threading.Lock()
        self._servers: dict[str, KnownServer] = {}
        self._lives: dict[str, int] = {}
        self._suspects: dict[str, float] = {}

    def __getitem__(self, server: str) -> KnownServer:
        """Return the record of a server by `Connection.server`, without waiting for the server."""
        with self._own_guard():
            return self._servers.setdefault(server, KnownServer())

    def life(self, address: str) -> int:
        """Return how often the server at ``address`` went away: another may have replaced it."""
        return self._lives.get(address, 0)

    def went_away(self, address: str, *, suspect: bool) -> None:
        """Record that a server closed a connection, or does not answer.

        The address is ``thrift://host:port``; if ``suspect``, others are tried before it for a
        while.
        """
        with self._own_guard():
            self._lives[address] = self.life(address) + 1
            if suspect:
                self._suspects[address] = time.monotonic()

    def is_suspect(self, address: str) -> bool:
        """Return whether the server at ``address`` failed a short time ago."""
        since = self._suspects.get(address)
        return since is not None and time.monotonic() - since < _SUSPECT_S

    def _own_guard(self) -> threading.Lock:
        if self._pid != os.getpid():
            # After a fork, the holder of a guard is the parent's; what was found out stays true.
            self._pid = os.getpid()
            self._guard = threading.Lock()
            self._servers = {
                server: replace(known, guard=threading.RLock())
                for server, known in self._servers.items()
            }
        return self._guard
