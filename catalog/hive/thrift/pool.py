"""The connections of one client: lent for one call each, kept open between calls, bounded."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from icecomb.catalog.hive.thrift.connection import Connection
from icecomb.format.errors import MetastoreError


class ConnectionPool:
    """Connections that one thread at a time uses, the last one used first.

    Args:
        connect: Makes a new connection.
        size: How many may be in use at once.
        wait_s: How long a thread waits for one when all are in use.
        idle_s: A connection unused for so long is closed: a firewall may have forgotten it.
        lifetime_s: A connection older than this is not used again; 0 = no limit.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        *,
        size: int,
        wait_s: float,
        idle_s: float,
        lifetime_s: float,
    ) -> None:
        self._connect = connect
        self._size = size
        self._wait_s = wait_s
        self._idle_s = idle_s
        self._lifetime_s = lifetime_s
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._free = threading.Condition()
        self._idle: list[tuple[float, Connection]] = []
        self._lent = 0
        self._generation = 0

    @property
    def open_connections(self) -> int:
        """How many are open, lent or not."""
        with self._free:
            return self._lent + len(self._idle)

    @contextmanager
    def borrow(self, server: str | None = None) -> Iterator[Connection]:
        """A connection for one call; one that is closed meanwhile is not used again.

        Args:
            server: Only a connection to this one (`Connection.server`) is used again.

        Raises:
            MetastoreError: all are in use, and none came free in time.
            UnreachableError: a new one cannot be made.
        """
        connection, generation = self._take(server)
        try:
            yield connection
        finally:
            self._give_back(connection, generation)

    def close(self) -> None:
        """Close what is not in use, and the rest when it is given back; stays usable."""
        if self._pid != os.getpid():
            return
        with self._free:
            idle, self._idle = self._idle, []
            self._generation += 1
        for _, connection in idle:
            connection.close()

    def _take(self, server: str | None) -> tuple[Connection, int]:
        if self._pid != os.getpid():
            # After a fork: connections, and whoever holds the condition, are the parent's.
            self._start()
        deadline = time.monotonic() + self._wait_s
        with self._free:
            while self._lent >= self._size:
                if not self._free.wait(deadline - time.monotonic()):
                    raise MetastoreError(
                        f"All {self._size} connections to the metastore are in use, and none came "
                        f"free within {self._wait_s:g} s",
                        hint="raise the catalog's property clients, or use fewer threads",
                    )
            self._lent += 1
            generation = self._generation
            connection = self._last_used(server)
        if connection is not None:
            return connection, generation
        try:
            return self._connect(), generation
        except BaseException:
            with self._free:
                self._lent -= 1
                self._free.notify()
            raise

    def _last_used(self, server: str | None) -> Connection | None:
        for place in reversed(range(len(self._idle))):
            since, connection = self._idle[place]
            if connection.is_stale() or self._is_old(since, connection):
                connection.close()
                del self._idle[place]
            elif server in {None, connection.server}:
                del self._idle[place]
                return connection
        return None

    def _give_back(self, connection: Connection, generation: int) -> None:
        now = time.monotonic()
        with self._free:
            self._lent -= 1
            forgotten = [one for since, one in self._idle if self._is_old(since, one)]
            self._idle = [each for each in self._idle if each[1] not in forgotten]
            if generation != self._generation:
                forgotten.append(connection)
            elif connection.is_open:
                self._idle.append((now, connection))
            self._free.notify()
        for one in forgotten:
            one.close()

    def _is_old(self, since: float, connection: Connection) -> bool:
        now = time.monotonic()
        aged = self._lifetime_s and now - connection.made > self._lifetime_s
        return bool(aged) or now - since > self._idle_s
