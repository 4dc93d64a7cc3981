"""What one client has found out about the metastores it talks to."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

_SUSPECT_S: Final = 60.0
"""For so long after it broke an address is tried after the others."""


class ValueCheck(Enum):
    """What a metastore does with an alter that says which parameter value it expects to replace.

    ``ATOMIC``: it compares and replaces in one statement (HIVE-28121), so of two such alters at
    once one is refused. ``COMPARED``: it compares in a transaction (HIVE-26882 alone): on MySQL and
    MariaDB two at once may both succeed. ``REFUSED``: it refuses all of them, as it must without
    direct SQL. ``IGNORED``: it pays no heed.
    """

    ATOMIC = "atomic"
    COMPARED = "compared"
    REFUSED = "refused"
    IGNORED = "ignored"

    @property
    def holds(self) -> bool:
        """Whether an alter that comes after another one is refused."""
        return self in {ValueCheck.ATOMIC, ValueCheck.COMPARED}


@dataclass(slots=True)
class KnownServer:
    """One server, as long as it lives.

    Attributes:
        guard: Held by the thread that is finding out; others that ask about this server wait.
        check: None = not found out yet.
        lock_expiry_s: Seconds without a heartbeat after which a lock is given away; None = unsaid.
        lock_expiry_asked: Whether that was asked for.
    """

    guard: threading.Lock = field(default_factory=threading.Lock)
    check: ValueCheck | None = None
    lock_expiry_s: float | None = None
    lock_expiry_asked: bool = False


class KnownServers:
    """The servers of one client; used by all of its threads."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._guard = threading.Lock()
        self._servers: dict[str, KnownServer] = {}
        self._lives: dict[str, int] = {}
        self._suspects: dict[str, float] = {}

    def __getitem__(self, server: str) -> KnownServer:
        """What is known of one, by `Connection.server`; never waits for a server."""
        with self._own_guard():
            return self._servers.setdefault(server, KnownServer())

    def life(self, address: str) -> int:
        """Count how often the server at ``address`` went away: another one may have its place."""
        return self._lives.get(address, 0)

    def went_away(self, address: str, *, suspect: bool) -> None:
        """The server at ``address`` closed a connection, or does not answer.

        Args:
            address: As ``thrift://host:port``.
            suspect: Whether others are to be tried before it for a while.
        """
        with self._own_guard():
            self._lives[address] = self.life(address) + 1
            if suspect:
                self._suspects[address] = time.monotonic()

    def is_suspect(self, address: str) -> bool:
        """Whether it failed a short time ago."""
        since = self._suspects.get(address)
        return since is not None and time.monotonic() - since < _SUSPECT_S

    def _own_guard(self) -> threading.Lock:
        if self._pid != os.getpid():
            # After a fork: whoever holds a guard is the parent's; what it found out stays true.
            self._pid = os.getpid()
            self._guard = threading.Lock()
            self._servers = {
                server: replace(known, guard=threading.Lock())
                for server, known in self._servers.items()
            }
        return self._guard
