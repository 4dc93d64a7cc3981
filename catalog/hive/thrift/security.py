"""Who we are to a metastore and how the conversation is kept private, by Hive's own settings.

What TLS and tokens need is imported when they are used: most connections are plain.
"""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from icecomb.catalog.catalog_property import (
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
"""What a metastore gives to its users."""


@dataclass(frozen=True, slots=True)
class SaslSettings:
    """How we prove who we are: ``hive.metastore.sasl.enabled``.

    Attributes:
        service: The metastore's principal, ``_HOST`` in it is the host connected to:
            ``hive.metastore.kerberos.principal``.
        principal: Ours, else whoever the ticket cache says: ``hive.metastore.client.principal``.
        keytab: Where our key is, else the ticket cache: ``hive.metastore.client.keytab``.
        protection: ``auth``, ``auth-int`` or ``auth-conf`` if the metastore leaves the choice:
            ``hadoop.rpc.protection``; None = the weakest it takes.
        token_files: Where a token is looked for that is used instead of Kerberos:
            ``hadoop.token.files``, then ``HADOOP_TOKEN_FILE_LOCATION`` in the environment.
        token_signature: The service of that token: ``hive.metastore.token.signature``.
        proxy_user: On whose behalf we ask: ``hive.metastore.proxy-user``; None = our own.
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
        """The token as it is now: whoever makes them may write the files anew.

        Raises:
            ConfigurationError: a file cannot be read.
        """
        from icecomb.format.storage.delegation_token import find_token

        found = (find_token(path, TOKEN_KIND, self.token_signature) for path in self.token_files)
        return next((token for token in found if token is not None), None)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> SaslSettings | None:
        """As the catalog's properties say; None = without SASL.

        Raises:
            ConfigurationError: the metastore's principal is missing, or a property makes no sense.
        """
        if not SASL.of(properties):
            return None
        from icecomb.format.storage.delegation_token import token_sources

        service = SERVICE.of(properties)
        keytab = KEYTAB.of(properties)
        if keytab is not None and not (Path(keytab).is_file() and os.access(keytab, os.R_OK)):
            raise ConfigurationError(
                f"The keytab {keytab} (hive.metastore.client.keytab) cannot be read",
                hint="check the path and its permissions",
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
                hint="set hive.metastore.kerberos.principal=hive/_HOST@REALM, as its hive-site.xml",
            )
        return found

    def service_at(self, host: str) -> str:
        """The metastore's principal when connected to ``host``.

        Raises:
            ConfigurationError: it is no principal of a service.
        """
        service = self.service.replace("_HOST", host.lower())
        if "/" not in service:
            raise ConfigurationError(
                f"{self.service!r} (hive.metastore.kerberos.principal) is no service's principal",
                hint="write it as hive/_HOST@REALM",
            )
        return service


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """TLS: ``hive.metastore.use.SSL``.

    Attributes:
        trusted: A PEM file (or folder) of authorities, else the system's own:
            ``hive.metastore.truststore.path``.
    """

    trusted: str | None = None

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> TlsSettings | None:
        """As the catalog's properties say; None = without TLS.

        Raises:
            ConfigurationError: the authorities cannot be read.
        """
        if not TLS.of(properties):
            return None
        found = cls(TRUST_STORE.of(properties))
        _context(found.trusted)
        return found

    def wrap(self, plug: socket.socket, host: str) -> ssl.SSLSocket:
        """The handshake with ``host``.

        Raises:
            ssl.SSLError: it is not trusted, or does not speak TLS.
        """
        return _context(self.trusted).wrap_socket(plug, server_hostname=host)


# Of the process: to read the system's authorities takes 90 ms, and many connections are made.
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
            hint="of a Java trust store: keytool -list -rfc -keystore STORE > authorities.pem",
        ) from error
