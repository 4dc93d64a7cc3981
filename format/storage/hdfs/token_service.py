"""The clusters that delegation tokens are for: a token is shown to no other.

As in Hadoop a token names its service: a nameservice, or `host:port` of a name node, with the host
as a name or as an address. A location from metadata may name any host. So the addresses of hosts
that the settings do not name count only if the connection leads there, too: whoever owns a host's
name may answer with another address at every question. Names of an address (reverse DNS) never
count, which are said by whoever owns the address. Over TLS, where a certificate proves a name, only
names of the settings count. Without it whoever owns the network reads what is sent, and a location
can ask for that (`webhdfs://`): a cluster that the settings name with TLS is another one without.
Source: Hadoop's ``SecurityUtil.buildTokenService``, ``HAUtilClient``.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property

from icecomb.format.storage.hdfs.address import HdfsAddress, KnownCluster, known_clusters, with_port


class TokenServices:
    """The services of one cluster, as its tokens name them."""

    def __init__(self, address: HdfsAddress, properties: Mapping[str, str]) -> None:
        self._web = frozenset(each.lower() for each in address.name_nodes)
        self._own = set(self._web)
        self._secure = address.secure
        if address.cluster:
            self._own.add(with_port(address.cluster.removeprefix("hdfs://")).lower())
        self._known = known_clusters(properties)
        self._decided: dict[str, bool] = {}
        self._bound: frozenset[str] = frozenset()

    @cached_property
    def is_configured(self) -> bool:
        """Whether the settings name the cluster, by this name or by another one of its hosts."""
        return bool(self._described)

    @property
    def may_see_tickets(self) -> bool:
        """Whether the cluster may be shown a ticket, which is as good at another port of a host.

        Whoever reads it on the way can be first to show it, to a server that demands TLS.
        """
        return self._secure or self.is_configured

    def has(self, service: str) -> bool:
        """Return whether a token for `service` is for this cluster."""
        found = self._decided.get(service)
        if found is None:
            found = self._decided[service] = bool(service) and self._is_for(service.lower())
        return found

    def _is_for(self, service: str) -> bool:
        if not self.may_see_tickets and any(each.is_secure for each in self._known):
            return False
        if service in self._own:
            return True
        names = {name for each in self._described for name in _services(each)}
        if service in names or service in _by_address(names):
            return True
        reached = _by_address(self._own)
        if service not in reached:
            return False
        return self.is_configured or self._bind(reached)

    def _bind(self, reached: set[str]) -> bool:
        """Return whether a name may count by its addresses, to which connections must then lead."""
        if self._secure:
            return False
        self._bound |= frozenset(each.rpartition(":")[0] for each in reached)
        return True

    def is_of_another(self, service: str) -> bool:
        """Return whether `service` is another cluster that the settings name."""
        return bool(service) and service.lower() in self._of_others

    @cached_property
    def _of_others(self) -> set[str]:
        others = [each for each in self._known if each not in self._described]
        names = {name for each in others for name in _services(each)}
        return names | _by_address(names)

    def check_peer(self, host: str, port: int, connection: socket.socket) -> None:
        """Check that a connection leads to the address for which a token was found.

        ConnectionError is raised if it leads elsewhere.
        """
        if self._bound and f"{host.lower()}:{port}" in self._web:
            reached = str(connection.getpeername()[0])
            if reached not in self._bound:
                raise ConnectionError(f"{host} is at {reached}, where no token is sent to")

    @cached_property
    def _described(self) -> list[KnownCluster]:
        known = [each for each in self._known if self._secure >= each.is_secure]
        found = [each for each in known if not self._web.isdisjoint(each.web)]
        if found:
            return found
        # only what names of the settings lead to: those in a location are another's
        reached = _by_address(self._web)
        found = [each for each in known if reached and reached <= _by_address(each.web)]
        return found if found and self._bind(reached) else []


def _services(known: KnownCluster) -> set[str]:
    """Return the services of tokens for a cluster, without those by address."""
    found = {*known.own, *known.web}
    if known.nameservice:
        name = known.nameservice.lower()
        found |= {f"ha-{scheme}:{name}" for scheme in ("hdfs", "webhdfs", "swebhdfs")}
        found.add(with_port(name))
    return found


def _by_address(services: Iterable[str]) -> set[str]:
    """Return services `host:port` with the addresses of their hosts."""
    found = set()
    for each in services:
        host, _, port = each.rpartition(":")
        if port.isdecimal() and not host.startswith("ha-"):
            with suppress(OSError, UnicodeError):
                for *_, where in socket.getaddrinfo(host.strip("[]"), None):
                    found.add(f"{ipaddress.ip_address(str(where[0]).partition('%')[0])}:{port}")
    return found
