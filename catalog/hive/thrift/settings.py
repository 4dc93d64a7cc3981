"""How a client connects to metastores, by the names that Hive and Iceberg give the settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from icecomb.catalog.configuration import number
from icecomb.catalog.hive.thrift.hive_properties import HiveProperties
from icecomb.catalog.hive.thrift.security import SaslSettings, TlsSettings
from icecomb.catalog.hive.thrift.user import current_user
from icecomb.format.errors import ConfigurationError

URI_SELECTION: Final = ("SEQUENTIAL", "RANDOM")


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Times are in seconds.

    Attributes:
        timeout_s: For each reply: ``hive.metastore.client.socket.timeout``.
        connect_timeout_s: For each address to accept a connection:
            ``hive.metastore.client.connect.timeout-s``.
        lifetime_s: After which a connection is made anew, 0 = never:
            ``hive.metastore.client.socket.lifetime``.
        idle_s: Without a call, after which it is made anew:
            ``client.pool.cache.eviction-interval-ms``.
        pool_size: Connections in use at once: ``clients``.
        pool_wait_s: How long a thread waits for one of them: ``clients.wait-timeout-ms``.
        random: Whether addresses are tried in random order: ``hive.metastore.uri.selection``.
        user: Told to the server by ``set_ugi``: ``ugi``, else who runs this process; None = not
            told: ``hive.metastore.execute.setugi`` is false, or SASL says it.
        sasl: None = without.
        tls: None = without.
    """

    timeout_s: float = 180.0
    connect_timeout_s: float = 10.0
    lifetime_s: float = 0.0
    idle_s: float = 300.0
    pool_size: int = 16
    pool_wait_s: float = 60.0
    random: bool = False
    user: str | None = None
    sasl: SaslSettings | None = None
    tls: TlsSettings | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ConnectionSettings:
        """As the catalog's properties say.

        Raises:
            ConfigurationError: a property makes no sense.
        """
        given = HiveProperties(properties)
        idle_ms = number(properties, "client.pool.cache.eviction-interval-ms", 300_000, least=0)
        wait_ms = number(properties, "clients.wait-timeout-ms", 60_000, least=0)
        selection = given.text("uri.selection", "SEQUENTIAL").upper()
        if selection not in URI_SELECTION:
            raise ConfigurationError(
                f"hive.metastore.uri.selection is {selection!r}: one of {', '.join(URI_SELECTION)}"
            )
        sasl = SaslSettings.of(given)
        told = sasl is None and given.flag("execute.setugi", default=True)
        return cls(
            timeout_s=given.seconds("client.socket.timeout", 180.0),
            connect_timeout_s=number(
                properties, "hive.metastore.client.connect.timeout-s", 10.0, least=0.0
            ),
            lifetime_s=given.seconds("client.socket.lifetime", 0.0),
            idle_s=idle_ms / 1000,
            pool_size=number(properties, "clients", 16, least=1),
            pool_wait_s=wait_ms / 1000,
            random=selection == "RANDOM",
            user=(properties.get("ugi") or current_user()) if told else None,
            sasl=sasl,
            tls=TlsSettings.of(given),
        )
