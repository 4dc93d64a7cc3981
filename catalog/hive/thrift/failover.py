"""The choice among several metastores for a connection."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from typing import Final

from icecomb.catalog.hive.thrift.connection import Connection, endpoint
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.hive.thrift.known_server import KnownServers
from icecomb.catalog.hive.thrift.settings import ConnectionSettings

_LOG: Final = logging.getLogger(__name__)


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
