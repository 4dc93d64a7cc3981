"""Azure credentials: a key, signature or token, or those `azure-identity` finds and renews."""

from __future__ import annotations

import base64
import binascii
import email.utils
import hashlib
import hmac
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from icecomb.format.errors import ConfigurationError, FileIOError
from icecomb.format.optional_library import optional_library
from icecomb.format.property.property import remember_secret
from icecomb.format.storage.object_store.azure_settings import AzureSettings
from icecomb.format.storage.object_store.client import UNREADABLE, told
from icecomb.format.storage.object_store.rest_client import Signer, limited_session

if TYPE_CHECKING:
    from requests import PreparedRequest

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

        class Transport(RequestsTransport):  # type: ignore[misc]
            def sleep(self, duration: float) -> None:
                # `Retry-After` may name any time
                super().sleep(min(duration, LONGEST_PAUSE_S))

        # one that owned its session would close it after the first request
        transport = Transport(session=self._session, session_owner=False)
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
        except (AzureError, *UNREADABLE) as error:
            text = told(str(error)).rstrip(".")
            raise FileIOError(
                f"No credentials were found for storage account {self._account}: {text}",
                hint="Set adls.account-key, adls.sas-token, or adls.tenant-id, adls.client-id and "
                "adls.client-secret, or log in (az login); adls.anon=true reads public containers.",
            ) from None
        remember_secret(found.token)
        self._token, self._until = found.token, float(found.expires_on)
