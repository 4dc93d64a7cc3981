"""The connections of one client: to one of its metastores, lent for one call each, bounded."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from icecomb.catalog.hive.thrift.connection import Connection, endpoint
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.hive.thrift.known_server import KnownServers
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.format.errors import MetastoreError
from icecomb.format.holding import Holding

_LOG: Final = logging.getLogger(__name__)


class _Loan:
    """A place in the pool, and the connection in it."""

    connection: Connection | None = None
    generation = 0


class ConnectionPool:
    """A pool of connections, each used by one thread at a time, the last one used first.

    Args:
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
        # its own methods: an interrupt at the exit of a condition would leave it locked
        self._guard = threading.RLock()
        self._free = threading.Condition(self._guard)
        self._idle: list[tuple[float, Connection]] = []
        self._lent: set[_Loan] = set()
        self._generation = 0

    @property
    def open_connections(self) -> int:
        """The number of open connections, lent or not."""
        with self._guard:
            return len(self._lent) + len(self._idle)

    def borrow(self, held: Holding, server: str | None = None) -> Connection:
        """Lend a connection for one call until `held` ends; if given, reuse only to `server`."""
        if self._pid != os.getpid():
            # After a fork, the connections and the holder of the guard are the parent's.
            self._start()
        loan = _Loan()
        held.add(partial(self._give_back, loan))
        self._take(loan, server)
        if loan.connection is None:
            loan.connection = self._connect()
        return loan.connection

    def close(self) -> None:
        """Close the idle connections, and the lent ones when given back; the pool stays usable."""
        if self._pid != os.getpid():
            return
        with self._guard:
            idle, self._idle = self._idle, []
            self._generation += 1
        for _, connection in idle:
            connection.close()

    def _take(self, loan: _Loan, server: str | None) -> None:
        deadline = time.monotonic() + self._wait_s
        with self._guard:
            while len(self._lent) >= self._size:
                if not self._free.wait(deadline - time.monotonic()):
                    raise MetastoreError(
                        f"All {self._size} connections to the metastore are in use, and none came "
                        f"free within {self._wait_s:g} s",
                        hint="Raise the catalog's property clients, or use fewer threads.",
                    )
            self._lent.add(loan)
            loan.generation = self._generation
            loan.connection = self._last_used(server)

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

    def _give_back(self, loan: _Loan) -> None:
        now = time.monotonic()
        with self._guard:
            discarded = [one for since, one in self._idle if self._is_old(since, one)]
            self._idle = [each for each in self._idle if each[1] not in discarded]
            if loan in self._lent and (connection := loan.connection) is not None:
                # taken from the loan first: were this interrupted, it would be lent twice
                loan.connection = None
                # an interrupt leaves half a conversation behind, which must not be continued
                if loan.generation != self._generation or connection.in_call:
                    discarded.append(connection)
                elif connection.is_open:
                    self._idle.append((now, connection))
            self._lent.discard(loan)
            self._free.notify()
        for one in discarded:
            one.close()

    def _is_old(self, since: float, connection: Connection) -> bool:
        now = time.monotonic()
        aged = self._lifetime_s and now - connection.made > self._lifetime_s
        return bool(aged) or now - since > self._idle_s


class Failover:
    """A connector to the first address that answers; those that failed lately are tried last.

    The addresses are asked of ``locate`` for each connection.
    """

    def __init__(
        self,
        locate: Callable[[], tuple[str, ...]],
        settings: ConnectionSettings,
        servers: KnownServers,
    ) -> None:
        self._locate = locate
        self._servers = servers
        self._settings = settings

    def connect(self) -> Connection:
        """Open a new connection; UnreachableError says for each address why it failed."""
        addresses = list(self._locate())
        if self._settings.random:
            random.shuffle(addresses)
        failures: list[UnreachableError] = []
        for address in sorted(addresses, key=self._servers.is_suspect):
            try:
                connection = Connection(address, self._settings, self._servers)
            except UnreachableError as error:  # noqa: PERF203 - one round a metastore
                self._servers.went_away(address, suspect=True)
                failures.append(error)
                _LOG.info("%s", error.message)
            else:
                if failures:
                    _LOG.info("the metastore %s is called instead", address)
                return connection
        if len(failures) == 1:
            raise failures[0]
        raise UnreachableError(
            f"none of the metastores {', '.join(addresses)} can be reached: "
            + "; ".join(failure.message for failure in failures),
            hint=failures[0].hint,
        )


def addresses_of(uri: str) -> tuple[str, ...]:
    """Return the addresses of ``thrift://a:9083,thrift://b:9083``."""
    addresses = tuple(part.strip() for part in uri.split(",") if part.strip())
    for address in addresses or ("",):
        endpoint(address)
    return addresses
