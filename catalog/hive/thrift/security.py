"""Authentication to a metastore and protection of the connection, by Hive's settings.

Modules for TLS and tokens are imported only when used: most connections are plain.
"""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icecomb.catalog.configuration.catalog_property import (
    KEYTAB,
    METASTORE_PROXY_USER,
    PRINCIPAL,
    PROTECTION,
    SASL,
    SERVICE,
    TLS,
    TOKEN_SIGNATURE,
    TRUST_STORE,
)
from icecomb.format.errors import ConfigurationError
from icecomb.format.storage.storage_property import TOKEN_FILES

if TYPE_CHECKING:
    import ssl

    from icecomb.format.storage.delegation_token import DelegationToken

TOKEN_KIND: Final = "HIVE_DELEGATION_TOKEN"  # noqa: S105 - what it is called, not one
"""The kind of token that a metastore issues to its users."""


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """Settings of authentication: ``hive.metastore.sasl.enabled``.

    Attributes:
        service: The metastore's principal, in which ``_HOST`` stands for the host connected to:
            ``hive.metastore.kerberos.principal``.
        principal: The client's principal, ``hive.metastore.client.principal``; None for that of the
            ticket cache.
        keytab: The file with the client's key, ``hive.metastore.client.keytab``; None for the
            ticket cache.
        protection: ``auth``, ``auth-int`` or ``auth-conf`` if the metastore leaves the choice:
            ``hadoop.rpc.protection``; None for the weakest it accepts.
        token_files: Files searched for a token that is used instead of Kerberos:
            ``hadoop.token.files``, then ``HADOOP_TOKEN_FILE_LOCATION`` in the environment.
        token_signature: The service of that token: ``hive.metastore.token.signature``.
        proxy_user: The user to act for, ``hive.metastore.proxy-user``; None for the client's own.
    """

    service: str
    principal: str | None = None
    keytab: str | None = None
    protection: str | None = None
    token_files: tuple[str, ...] = ()
    token_signature: str | None = None
    proxy_user: str | None = None

    @property
    def token(self) -> DelegationToken | None:
        """Return the current token, read again each time: the files may be rewritten."""
        from icecomb.format.storage.delegation_token import find_token

        found = (find_token(path, TOKEN_KIND, self.token_signature) for path in self.token_files)
        return next((token for token in found if token is not None), None)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> SaslSettings | None:
        """Read the settings from a catalog's properties; None for no SASL."""
        if not SASL.of(properties):
            return None
        from icecomb.format.storage.delegation_token import token_sources

        service = SERVICE.of(properties)
        keytab = KEYTAB.of(properties)
        if keytab is not None and not (Path(keytab).is_file() and os.access(keytab, os.R_OK)):
            raise ConfigurationError(
                f"The keytab {keytab} (hive.metastore.client.keytab) cannot be read",
                hint="Check the path and its permissions.",
            )
        proxy_user = METASTORE_PROXY_USER.of(properties)
        found = cls(
            service or "",
            PRINCIPAL.of(properties),
            keytab,
            PROTECTION.of(properties),
            token_sources(TOKEN_FILES.of(properties)) if keytab is None or proxy_user else (),
            TOKEN_SIGNATURE.of(properties),
            proxy_user,
        )
        if found.token is None and service is None:
            raise ConfigurationError(
                "hive.metastore.sasl.enabled is true, but nothing says who the metastore is",
                hint="Set hive.metastore.kerberos.principal=hive/_HOST@REALM, as its "
                "hive-site.xml.",
            )
        return found

    def service_at(self, host: str) -> str:
        """Return the metastore's principal when connected to ``host``."""
        service = self.service.replace("_HOST", host.lower())
        if "/" not in service:
            raise ConfigurationError(
                f"{self.service!r} (hive.metastore.kerberos.principal) is not a service principal",
                hint="Write it as hive/_HOST@REALM",
            )
        return service


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS: ``hive.metastore.use.SSL``.

    Attributes:
        trusted: A PEM file or folder of authorities, ``hive.metastore.truststore.path``; None for
            the system's.
    """

    trusted: str | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> TlsSettings | None:
        """Read the settings from a catalog's properties; None for no TLS."""
        if not TLS.of(properties):
            return None
        found = cls(TRUST_STORE.of(properties))
        _context(found.trusted)
        return found

    def wrap(self, plug: socket.socket, host: str) -> ssl.SSLSocket:
        """Perform the handshake with ``host`` and return the encrypted socket."""
        return _context(self.trusted).wrap_socket(plug, server_hostname=host)


# Cached per process: reading the system's authorities takes 90 ms.
@functools.cache
def _context(trusted: str | None) -> ssl.SSLContext:
    import ssl

    if trusted is None:
        return ssl.create_default_context()
    path = Path(trusted)
    try:
        if path.is_dir():
            return ssl.create_default_context(capath=trusted)
        return ssl.create_default_context(cafile=trusted)
    except OSError as error:
        raise ConfigurationError(
            f"{trusted} (hive.metastore.truststore.path) holds no certificates in PEM: {error}",
            hint="Of a Java trust store: keytool -list -rfc -keystore STORE > authorities.pem.",
        ) from error
