"""Address and credentials of an Azure container.

Each setting is taken from the first of these sources, the credentials together from a single one:

1. properties of Iceberg and PyIceberg: `adls.account-key`, `adls.sas-token.<account>`, ...;
2. Hadoop's ABFS and WASB, for the account of the location and then for all, as properties or in
   core-site.xml: `fs.azure.account.key.<account>.dfs.core.windows.net`, `fs.azure.sas.*`,
   `fs.azure.account.oauth2.*`;
3. the client library's defaults: variables `AZURE_*`, workload and managed identities.

Whoever writes metadata may name any host in a location. Credentials are sent to Azure's hosts, and
to those that a setting names.

Source: Iceberg, AzureProperties; PyIceberg, configuration; Hadoop, ABFS, "Authentication".
"""

from __future__ import annotations

import base64
import binascii
import email.utils
import hashlib
import hmac
import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from icecomb.format.errors import ConfigurationError, FileIOError, IcecombError
from icecomb.format.optional_library import optional_library
from icecomb.format.secret import remember_secret
from icecomb.format.storage.object_store.client import UNREADABLE, told
from icecomb.format.storage.object_store.rest_client import Signer, limited_session
from icecomb.format.storage.object_store.setting_search import SettingSearch
from icecomb.format.storage.storage_property import (
    ADLS_ACCOUNT,
    ADLS_ANONYMOUS,
    ADLS_AUTHORITY,
    ADLS_CLIENT,
    ADLS_CONNECTION,
    ADLS_HOST,
    ADLS_KEY,
    ADLS_SAS,
    ADLS_SCHEME,
    ADLS_SECRET,
    ADLS_TENANT,
    ADLS_TOKEN,
)

if TYPE_CHECKING:
    from requests import PreparedRequest

EMULATOR_ACCOUNT: Final = "devstoreaccount1"
_EMULATOR_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""The published key of the emulator Azurite."""

_TENANT: Final = re.compile(r"(https?://[^/]+)/([^/]+)/oauth2(?:/v2\.0)?/token/?")
_NEEDED: Final = ("tenant_id", "client_id", "client_secret")
_REFUSED: Final = {
    "adls.token-credential-provider": "it names a Java class",
    "adls.credential": "it is a Python object: set adls.sas-token or adls.account-key",
    "fs.azure.sas.token.provider.type": "it names a Java class",
    "fs.azure.encryption.context.provider.type": "it names a Java class",
}
_OF_AZURE: Final = re.compile(
    r"[a-z0-9-]+(?:\.z[0-9a-z]{2})?\.(?:blob|dfs)\."
    r"(?:core\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net|cloudapi\.de)"
    r"|storage\.azure\.net|fabric\.microsoft\.com)"
    r"|[a-z0-9-]+\.z[0-9a-z]{2}\.onelake\.fabric\.microsoft\.com"
)
"""The hosts of accounts in Azure's clouds, with DNS zones, and those of OneLake."""
_HOST: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.?(?::[0-9]+)?")
_NAMING: Final = (
    "adls.sas-token", "adls.connection-string", "fs.azure.account.key", "fs.azure.sas.fixed.token",
    "fs.azure.account.auth.type", "fs.azure.account.oauth2.client.id",
)  # fmt: skip
"""Settings that may be those of one host, which they name."""
_LOCATIONS: Final = ("warehouse", "fs.defaultFS")
_APIS: Final = ("dfs", "blob")
_KEY_STORES: Final = ("fs.azure.encryption.encoded.client-provided-key",)
_VERSION: Final = "2021-12-02"
"""The protocol version, supported by Azure and its emulator."""
_SCOPE: Final = "https://storage.azure.com/.default"
_EARLY_S: Final = 300
"""Seconds before expiry at which a token is renewed: it must last until a request has arrived."""
LONGEST_PAUSE_S: Final = 5.0
_SIGNED: Final = (
    "Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type", "Date",
    "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range",
)  # fmt: skip
_SAS_VARIABLE: Final = "AZURE_STORAGE_SAS_TOKEN"
_KEY_VARIABLES: Final = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY")


@dataclass(frozen=True, slots=True)
class AzureSettings:
    """The settings of one container.

    Attributes:
        account: The storage account; empty if nothing names it.
        endpoint: URL of its blobs; None = `https://<account>.blob.core.windows.net`.
        account_key: Account key in Base64.
        sas_token: Shared access signature: a query without the question mark.
        tenant_id: Tenant; used with `client_id` and `client_secret`, or `token_file`.
        client_id: Client; without a secret or token file that of a managed identity.
        authority: URL of the token issuer; None = Azure's own.
        token_file: File with the token of a workload identity.
        sources: Property that each setting comes from, by attribute.
    """

    account: str = ""
    endpoint: str | None = None
    account_key: str | None = field(default=None, repr=False)
    sas_token: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    tenant_id: str | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    authority: str | None = None
    token_file: str | None = None
    managed: bool = False
    anonymous: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, str], container: str, host: str) -> AzureSettings:
        """Return the settings of a container.

        The `host` is that in the location, such as `account.dfs.core.windows.net`; empty if none.
        """
        return _Found(properties, container, host).settings()


class _Found:
    """The search for one container's settings and their sources."""

    def __init__(self, properties: Mapping[str, str], container: str, host: str) -> None:
        self._search = SettingSearch(properties)
        self._container = container
        self._host = host.lower()
        if self._host and not _HOST.fullmatch(self._host):
            raise ConfigurationError(
                f"{host!r} in a location of container {container} is not the name of a host",
                hint="Write abfss://container@account.dfs.core.windows.net/...",
            )
        self._account = re.split("[.:]", self._host)[0]

    def settings(self) -> AzureSettings:
        search = self._search
        search.refuse(_REFUSED)
        self._refuse_key_stores()
        connection = self._connection()
        if not self._account:
            self._account = (
                search.text("account", [ADLS_ACCOUNT])
                or connection.get("accountname", "")
                or (search.text("", [ADLS_HOST]) or "").partition(".")[0]
            )
        if not self._account:
            raise ConfigurationError(
                f"No storage account is named for container {self._container}",
                hint="Write abfss://container@account.dfs.core.windows.net/..., or set "
                "adls.account-name.",
            )
        endpoint = self._endpoint(connection)
        identity = self._identity(connection)
        if "endpoint" not in search.sources and not identity.get("anonymous"):
            self._check_host()
        if endpoint is None and self._host:
            endpoint = f"{self._scheme()}://{re.sub(r'[.]dfs[.]', '.blob.', self._host, count=1)}"
        return AzureSettings(
            account=self._account, endpoint=endpoint, **identity, sources=search.sources
        )

    def _check_host(self) -> None:
        """Check that credentials may be sent to the host in the location."""
        if not self._host or _OF_AZURE.fullmatch(self._host):
            return
        # a name without a dot is that of an account in these
        keys = (*_NAMING, f"fs.azure.sas.{self._container.lower()}") if "." in self._host else ()
        named = {f"{key}.{host}" for key in keys for host in self._spellings()}
        named &= {key.lower() for key in self._search.hadoop}
        for key in _LOCATIONS:
            where = self._search.hadoop.get(key, "").lower().partition("://")[2].partition("/")[0]
            if where.partition("@")[2] in self._spellings():
                named.add(key)
        if not named:
            raise ConfigurationError(
                f"{self._host} is not one of Azure's hosts, and no setting names it: it is sent no "
                "credentials",
                hint=f"If it is yours, set {ADLS_HOST}, or {ADLS_SAS}.{self._host} or "
                f"fs.azure.account.key.{self._host} in place of those for all accounts; "
                f"{ADLS_ANONYMOUS}=true reads public containers.",
            )

    def _spellings(self) -> list[str]:
        """Return the location's host, and under which an account's other API is."""
        found = [re.sub(r"\.(?:dfs|blob)\.", f".{kind}.", self._host, count=1) for kind in _APIS]
        return list(dict.fromkeys((self._host, *found)))

    def _hadoop(self, key: str) -> list[str]:
        """Return Hadoop's names of a setting: for this account's hosts, then for all accounts."""
        hosts = self._spellings() if self._host else []
        if "." not in self._host:  # nothing says in which cloud the account is
            hosts += [f"{self._account}.{kind}.core.windows.net" for kind in _APIS]
        return [*(f"{key}.{host}" for host in dict.fromkeys(hosts)), key]

    def _connection(self) -> dict[str, str]:
        """Return the parts of the connection string, by lower-case name."""
        properties = self._search.properties
        key = next(
            (
                f"{ADLS_CONNECTION}.{end}"
                for end in (self._host, self._account)
                if end and f"{ADLS_CONNECTION}.{end}" in properties
            ),
            ADLS_CONNECTION.key,
        )
        text = properties.get(key, "")
        parts = dict(_pairs(text))
        if text and not parts:
            raise ConfigurationError(
                f"{key} is not a connection string",
                hint="Copy it from the access keys of the storage account: "
                "DefaultEndpointsProtocol=https;AccountName=...;AccountKey=...",
                property=key,
            )
        if parts.get("usedevelopmentstorage", "").lower() == "true":
            parts.setdefault("accountname", EMULATOR_ACCOUNT)
            parts.setdefault("accountkey", _EMULATOR_KEY)
            parts.setdefault("blobendpoint", f"http://127.0.0.1:10000/{EMULATOR_ACCOUNT}")
        for name in ("account_key", "sas_token", "endpoint") if parts else ():
            self._search.sources[name] = key
        return parts

    def _endpoint(self, connection: Mapping[str, str]) -> str | None:
        """Return the URL that settings name; see `_check_host` for the host of the location."""
        search = self._search
        if host := search.text("endpoint", [ADLS_HOST]):
            return f"{self._scheme()}://{host}"
        if authority := search.text("endpoint", [ADLS_AUTHORITY]):
            if authority.startswith("."):
                return f"{self._scheme()}://{self._account}{authority}"
            return f"{self._scheme()}://{authority}/{self._account}"
        if stated := connection.get("blobendpoint"):
            return stated.rstrip("/")
        if suffix := connection.get("endpointsuffix"):
            protocol = connection.get("defaultendpointsprotocol", self._scheme())
            return f"{protocol}://{self._account}.blob.{suffix}"
        search.sources.pop("endpoint", None)
        return None

    def _scheme(self) -> str:
        search = self._search
        if search.text("", [], ["fs.azure.always.use.https"]) == "false":
            return ADLS_SCHEME.of(search.properties, default="http")
        return ADLS_SCHEME.of(search.properties)

    def _identity(self, connection: Mapping[str, str]) -> dict[str, Any]:
        """Return the credentials of the first source that has any."""
        search, properties = self._search, self._search.properties
        if ADLS_ANONYMOUS.of(properties):
            search.sources["anonymous"] = ADLS_ANONYMOUS.key
            return {"anonymous": True}
        if token := search.text("token", [ADLS_TOKEN]):
            return {"token": token}
        for end in filter(None, (self._host, self._account)):
            if token := properties.get(f"{ADLS_SAS}.{end}"):
                search.sources["sas_token"] = f"{ADLS_SAS}.{end}"
                return {"sas_token": token.lstrip("?")}
        if token := search.text("sas_token", [ADLS_SAS]):
            return {"sas_token": token.lstrip("?")}
        if key := search.text("account_key", [ADLS_KEY]):
            return {"account_key": key}
        if found := self._client([ADLS_TENANT], [ADLS_CLIENT], [ADLS_SECRET]):
            return found
        if key := connection.get("accountkey"):
            return {"account_key": key}
        if token := connection.get("sharedaccesssignature"):
            return {"sas_token": token.lstrip("?")}
        return self._by_hadoop()

    def _client(self, tenant: list[Any], client: list[Any], secret: list[Any]) -> dict[str, Any]:
        search = self._search
        found = {
            "tenant_id": search.text("tenant_id", tenant),
            "client_id": search.text("client_id", client),
            "client_secret": search.text("client_secret", secret),
        }
        if found["client_secret"] is None:
            # a client id without a secret is that of a workload or managed identity
            return {}
        return self._whole(found, "adls.tenant-id, adls.client-id and adls.client-secret")

    def _whole(self, found: dict[str, Any], keys: str) -> dict[str, Any]:
        if missing := [name for name in _NEEDED if not found.get(name)]:
            raise ConfigurationError(
                f"The credentials for storage account {self._account} are incomplete: there is no "
                f"{' and no '.join(missing)}",
                hint=f"Set {keys}.",
            )
        return found

    def _by_hadoop(self) -> dict[str, Any]:
        search = self._search
        kind = search.text("kind", [], self._hadoop("fs.azure.account.auth.type")) or ""
        if kind.lower() in {"", "sas"}:
            wasb = [
                f"fs.azure.sas.{self._container}.{self._account}.blob.core.windows.net",
                f"fs.azure.sas.{self._container}.{self._host}",
            ]
            token = search.text("sas_token", [], [*self._hadoop("fs.azure.sas.fixed.token"), *wasb])
            if token:
                return {"sas_token": token.lstrip("?")}
        if kind.lower() in {"", "sharedkey"}:
            key = search.text("account_key", [], self._hadoop("fs.azure.account.key"))
            if key:
                return {"account_key": key}
        if kind.lower() == "oauth":
            return self._oauth()
        if kind.lower() not in {"", "sas", "sharedkey"}:
            raise ConfigurationError(
                f"Storage account {self._account}: {search.sources['kind']}={kind} is not served",
                hint="Set adls.account-key, adls.sas-token, or adls.tenant-id, adls.client-id and "
                "adls.client-secret.",
            )
        if kind:
            raise ConfigurationError(
                f"Storage account {self._account}: {search.sources['kind']} is {kind}, and nothing "
                "of that kind is set",
                hint=f"Set fs.azure.account.key.{self._account}.dfs.core.windows.net, or "
                "adls.account-key."
                if kind.lower() == "sharedkey"
                else "Set fs.azure.sas.fixed.token, or adls.sas-token.",
            )
        return {
            "client_id": search.text("client_id", [ADLS_CLIENT]),
            "tenant_id": search.text("tenant_id", [ADLS_TENANT]),
        }

    def _oauth(self) -> dict[str, Any]:
        """Return the credentials for `fs.azure.account.oauth.provider.type`."""
        search = self._search

        def said(name: str, key: str) -> str | None:
            return search.text(name, [], self._hadoop(f"fs.azure.account.oauth2.{key}"))

        provider = search.text("provider", [], self._hadoop("fs.azure.account.oauth.provider.type"))
        kind = (provider or "ClientCredsTokenProvider").rpartition(".")[2]
        endpoint = said("authority", "client.endpoint")
        place = _TENANT.fullmatch(endpoint or "")
        found: dict[str, Any] = {
            "client_id": said("client_id", "client.id"),
            "tenant_id": place[2] if place else said("tenant_id", "msi.tenant"),
            "authority": place[1] if place else said("authority", "msi.authority"),
        }
        if kind == "ClientCredsTokenProvider":
            if endpoint and place is None:
                raise ConfigurationError(
                    f"Storage account {self._account}: {search.sources['authority']} names no "
                    f"tenant: {endpoint}",
                    hint="Write https://login.microsoftonline.com/<tenant>/oauth2/token",
                )
            found["client_secret"] = said("client_secret", "client.secret")
            return self._whole(
                found,
                "fs.azure.account.oauth2.client.endpoint, .client.id and .client.secret",
            )
        if kind == "MsiTokenProvider":
            return {**found, "managed": True}
        if kind == "WorkloadIdentityTokenProvider":
            return {**found, "token_file": said("token_file", "token.file")}
        raise ConfigurationError(
            f"Storage account {self._account}: {kind} ({search.sources['provider']}) is not served",
            hint="Use ClientCredsTokenProvider, MsiTokenProvider or WorkloadIdentityTokenProvider, "
            "or set adls.account-key or adls.sas-token.",
        )

    def _refuse_key_stores(self) -> None:
        """Refuse settings that encrypt files with a key of the client."""
        for name in _KEY_STORES:
            for key in self._hadoop(name):
                if self._search.hadoop.get(key):
                    raise ConfigurationError(
                        f"Property {key} is not served: other engines would need the key for each "
                        "file",
                        hint="Let Azure keep the key: encryption scopes, or the account's own key.",
                        property=key,
                    )


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    for part in text.split(";"):
        name, sign, value = part.strip().partition("=")
        if sign:
            yield name.lower(), value


def azure_signer(settings: AzureSettings) -> Signer:
    """Return the signer for a container's requests."""
    said = settings.sources
    if settings.anonymous:
        return _Nobody("nobody", said.get("anonymous", "adls.anon"))
    if settings.token is not None:
        return _Token(settings.token, said.get("token", "adls.token"))
    if settings.sas_token is not None:
        return _Signature(settings.sas_token, said.get("sas_token", "adls.sas-token"))
    if settings.account_key is not None:
        source = said.get("account_key", "adls.account-key")
        return _SharedKey(settings.account, settings.account_key, source)
    if settings.client_secret is None and not settings.managed and settings.token_file is None:
        for variable in _KEY_VARIABLES:
            if key := os.environ.get(variable):
                return _SharedKey(settings.account, key, variable)
        if query := os.environ.get(_SAS_VARIABLE):
            return _Signature(query.lstrip("?"), _SAS_VARIABLE)
    return _Renewed(settings)


def _versioned(request: PreparedRequest) -> PreparedRequest:
    request.headers["x-ms-version"] = _VERSION
    request.headers["x-ms-date"] = email.utils.formatdate(usegmt=True)
    return request


class _Nobody(Signer):
    """A signer for anonymous access to public containers."""

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        return _versioned(request)


class _Token(Signer):
    """A signer with a given token, which is not renewed."""

    def __init__(self, token: str, source: str) -> None:
        super().__init__("a token", source)
        remember_secret(token)
        self._token = token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        _versioned(request).headers["Authorization"] = f"Bearer {self._token}"
        return request


class _Signature(Signer):
    """A signer that adds a shared access signature to each URL."""

    def __init__(self, query: str, source: str) -> None:
        super().__init__("a shared access signature", source)
        remember_secret(query)
        self._query = query

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        url = str(request.url)
        request.url = f"{url}{'&' if '?' in url else '?'}{self._query}"
        source = request.headers.get("x-ms-copy-source")
        if source is not None:
            request.headers["x-ms-copy-source"] = f"{source!s}?{self._query}"
        return _versioned(request)


class _SharedKey(Signer):
    """A signer with the account's key. Source: Azure Storage, Authorize with Shared Key."""

    def __init__(self, account: str, key: str, source: str) -> None:
        super().__init__(f"the key of account {account}", source)
        self._account = account
        try:
            self._key = base64.b64decode(key, validate=True)
        except binascii.Error:
            raise ConfigurationError(
                f"The key of storage account {account} is not in Base64",
                hint="Copy it from the access keys of the storage account to adls.account-key.",
            ) from None

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        _versioned(request)
        headers = {name.lower(): str(value).strip() for name, value in request.headers.items()}
        if headers.get("content-length") == "0":
            del headers["content-length"]
        lines = [str(request.method), *(headers.get(name.lower(), "") for name in _SIGNED)]
        lines += [f"{n}:{headers[n]}" for n in sorted(headers) if n.startswith("x-ms-")]
        place = urlsplit(str(request.url))
        lines.append(f"/{self._account}{place.path}")
        asked = parse_qsl(place.query, keep_blank_values=True)
        lines += [f"{name.lower()}:{value}" for name, value in sorted(asked)]
        digest = hmac.new(self._key, "\n".join(lines).encode(), hashlib.sha256).digest()
        signature = base64.b64encode(digest).decode()
        request.headers["Authorization"] = f"SharedKey {self._account}:{signature}"
        return request


class _Renewed(Signer):
    """A signer with a client secret, workload or managed identity, or the default of these."""

    def __init__(self, settings: AzureSettings) -> None:
        identity = optional_library(
            "azure.identity",
            f"Storage account {settings.account} needs azure-identity, as no key is set",
            "icecomb[azure]",
        )
        who = settings.client_id or "the application's default"
        super().__init__(who, settings.sources.get("client_id", "what azure-identity finds"))
        from azure.core.pipeline.transport import RequestsTransport

        self._session = limited_session()

        class PatientTransport(RequestsTransport):  # type: ignore[misc]
            def sleep(self, duration: float) -> None:
                # `Retry-After` may name any time
                super().sleep(min(duration, LONGEST_PAUSE_S))

        # one that owned its session would close it after the first request
        transport = PatientTransport(session=self._session, session_owner=False)
        others: dict[str, Any] = {"transport": transport}
        if settings.authority:
            others["authority"] = settings.authority
        self._account = settings.account
        self._lock = threading.Lock()
        self._token = ""
        self._until = 0.0
        self._credential: Any
        if settings.client_secret is not None:
            self._credential = identity.ClientSecretCredential(
                settings.tenant_id, settings.client_id, settings.client_secret, **others
            )
        elif settings.managed:
            self._credential = identity.ManagedIdentityCredential(
                client_id=settings.client_id, transport=transport
            )
        elif settings.token_file is not None:
            self._credential = identity.WorkloadIdentityCredential(
                tenant_id=settings.tenant_id,
                client_id=settings.client_id,
                token_file_path=settings.token_file,
                **others,
            )
        else:
            self._credential = identity.DefaultAzureCredential(
                managed_identity_client_id=settings.client_id,
                workload_identity_client_id=settings.client_id,
                workload_identity_tenant_id=settings.tenant_id,
                **others,
            )

    def close(self) -> None:
        """Implement `Signer.close`."""
        self._session.close()

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        with self._lock:
            if self._until - _EARLY_S <= time.time():
                self._renew()
            _versioned(request).headers["Authorization"] = f"Bearer {self._token}"
        return request

    def _renew(self) -> None:
        from azure.core.exceptions import AzureError

        try:
            found = self._credential.get_token(_SCOPE)
        except IcecombError:
            raise
        except (AzureError, OSError, *UNREADABLE) as error:
            # an OSError if a file with a token cannot be read
            text = told(str(error)).rstrip(".")
            raise FileIOError(
                f"No credentials were found for storage account {self._account}: {text}",
                hint="Set adls.account-key, adls.sas-token, or adls.tenant-id, adls.client-id and "
                "adls.client-secret, or log in (az login); adls.anon=true reads public containers.",
            ) from None
        remember_secret(found.token, is_renewed=True)
        self._token, self._until = found.token, float(found.expires_on)
