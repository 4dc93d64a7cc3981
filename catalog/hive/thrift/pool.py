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
    """A pool of connections, each used by one thread at a time, the last one used first.

    Args:
        connect: Opens a new connection.
        size: Maximum number of connections in use at once.
        wait_s: Seconds that a thread waits for a connection when all are in use.
        idle_s: Seconds after which an unused connection is closed: a firewall may have dropped it.
        lifetime_s: Seconds after which a connection is not used again; 0 for no limit.
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
        """The number of open connections, lent or not."""
        with self._free:
            return self._lent + len(self._idle)

    @contextmanager
    def borrow(self, server: str | None = None) -> Iterator[Connection]:
        """Lend a connection for one call; one that is closed meanwhile is not used again.

        Args:
            server: The only server (`Connection.server`) whose connections are used again.

        Raises:
            MetastoreError: If all are in use, and none came free in time.
            UnreachableError: If a new one cannot be opened.
        """
        connection, generation = self._take(server)
        try:
            yield connection
        finally:
            self._give_back(connection, generation)

    def close(self) -> None:
        """Close the idle connections, and the lent ones when given back; the pool stays usable."""
        if self._pid != os.getpid():
            return
        with self._free:
            idle, self._idle = self._idle, []
            self._generation += 1
        for _, connection in idle:
            connection.close()

    def _take(self, server: str | None) -> tuple[Connection, int]:
        if self._pid != os.getpid():
            # After a fork, the connections and the holder of the condition are the parent's.
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
            discarded = [one for since, one in self._idle if self._is_old(since, one)]
            self._idle = [each for each in self._idle if each[1] not in discarded]
            if generation != self._generation:
                discarded.append(connection)
            elif connection.is_open:
                self._idle.append((now, connection))
            self._free.notify()
        for one in discarded:
            one.close()

    def _is_old(self, since: float, connection: Connection) -> bool:
        now = time.monotonic()
        aged = self._lifetime_s and now - connection.made > self._lifetime_s
        return bool(aged) or now - since > self._idle_s
