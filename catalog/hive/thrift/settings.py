"""Settings of connections to metastores, by the names of Hive and Iceberg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from icecomb.catalog.configuration.catalog_property import (
    CLIENTS,
    CLIENTS_WAIT,
    CONNECT_TIMEOUT,
    IDLE,
    LARGEST_REPLY,
    SET_UGI,
    SOCKET_LIFETIME,
    SOCKET_TIMEOUT,
    UGI,
    URI_SELECTION,
)
from icecomb.catalog.hive.thrift.security import SaslSettings, TlsSettings
from icecomb.format.process import user_name


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Settings of connections; times are in seconds.

    Attributes:
        timeout_s: Timeout of each reply: ``hive.metastore.client.socket.timeout``.
        connect_timeout_s: Timeout of connecting to each address:
            ``hive.metastore.client.connect.timeout-s``.
        lifetime_s: Age after which a connection is replaced, 0 for never:
            ``hive.metastore.client.socket.lifetime``.
        idle_s: Time without a call after which a connection is replaced:
            ``client.pool.cache.eviction-interval-ms``.
        pool_size: Maximum number of connections in use at once: ``clients``.
        pool_wait_s: Time that a thread waits for one of them: ``clients.wait-timeout-ms``.
        random: Whether addresses are tried in random order: ``hive.metastore.uri.selection``.
        largest_reply: Maximum number of bytes of a reply: ``hive.thrift.client.max.message.size``.
        user: The user sent by ``set_ugi``: ``ugi``, else the user of this process; None if
            ``hive.metastore.execute.setugi`` is false, or SASL names the user.
    """

    timeout_s: float = 180.0
    connect_timeout_s: float = 10.0
    lifetime_s: float = 0.0
    idle_s: float = 300.0
    pool_size: int = 16
    pool_wait_s: float = 60.0
    random: bool = False
    largest_reply: int = LARGEST_REPLY.default
    user: str | None = field(default=None, repr=False)
    sasl: SaslSettings | None = None
    tls: TlsSettings | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> ConnectionSettings:
        """Read the settings from a catalog's properties."""
        sasl = SaslSettings.of(properties)
        told = sasl is None and SET_UGI.of(properties)
        return cls(
            timeout_s=SOCKET_TIMEOUT.of(properties),
            connect_timeout_s=CONNECT_TIMEOUT.of(properties),
            lifetime_s=SOCKET_LIFETIME.of(properties),
            idle_s=IDLE.of(properties) / 1000,
            pool_size=CLIENTS.of(properties),
            pool_wait_s=CLIENTS_WAIT.of(properties) / 1000,
            random=URI_SELECTION.of(properties) == "random",
            largest_reply=LARGEST_REPLY.of(properties),
            user=(UGI.of(properties) or current_user(properties)) if told else None,
            sasl=sasl,
            tls=TlsSettings.of(properties),
        )


def current_user(properties: Mapping[str, str]) -> str:
    """Return the name of the user that the catalog acts as, by Hadoop's rules."""
    named = (UGI.of(properties) or "").partition(":")[0]
    return named or user_name()
