"""Address and credentials of a bucket of Google Cloud Storage.

Each setting is taken from the first of these sources:

1. properties of Iceberg and PyIceberg: `gcs.oauth2.token`, `gcs.service.host`, ...;
2. Hadoop's connector, as properties or in core-site.xml: `fs.gs.auth.type` and related ones, which
   older versions call `google.cloud.auth.*`;
3. the client library's defaults: `GOOGLE_APPLICATION_CREDENTIALS` and other variables, the login of
   `gcloud`, the metadata service of the machine.

Source: Iceberg, GCPProperties; PyIceberg, configuration; Google's connector for Hadoop,
CONFIGURATION.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ConfigurationError, FileIOError, IcecombError
from icecomb.format.optional_library import optional_library
from icecomb.format.secret import remember_secret
from icecomb.format.storage.object_store.client import UNREADABLE, told
from icecomb.format.storage.object_store.rest_client import Signer, limited_session
from icecomb.format.storage.object_store.setting_search import SettingSearch
from icecomb.format.storage.storage_property import (
    GCS_ENDPOINT,
    GCS_NO_AUTH,
    GCS_TOKEN,
    GCS_TOKEN_EXPIRY,
    GCS_USER_PROJECT,
)

if TYPE_CHECKING:
    from requests import PreparedRequest

_KEY_FILES: Final = (
    "fs.gs.auth.service.account.json.keyfile",
    "google.cloud.auth.service.account.json.keyfile",
)
_FOUND: Final = {"", "application_default", "compute_engine"}
_IMPERSONATED: Final = "only the machine's own credentials may impersonate"
_REFUSED: Final = {
    "gcs.encryption-key": "other engines would need the key for each file",
    "gcs.decryption-key": "only files that Google itself can decrypt are read",
    "gcs.impersonate.service-account": _IMPERSONATED,
    "fs.gs.auth.impersonation.service.account": _IMPERSONATED,
    "fs.gs.encryption.key": "other engines would need the key for each file",
}
_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
_REMEDY: Final = (
    "Set GOOGLE_APPLICATION_CREDENTIALS, log in (gcloud auth application-default login) or set "
    "gcs.oauth2.token; gcs.no-auth=true reads public buckets."
)


@dataclass(frozen=True, slots=True)
class GoogleSettings:
    """The settings of one bucket.

    Attributes:
        endpoint: URL of the store; None = Google's.
        token_expires_at_ms: The token's expiry, in milliseconds since the epoch; None = unknown.
        key_file: File with a service account's key.
        user_project: Project billed for requests.
        sources: Property that each setting comes from, by attribute.
    """

    endpoint: str | None = None
    token: str | None = field(default=None, repr=False)
    token_expires_at_ms: int | None = None
    key_file: str | None = None
    anonymous: bool = False
    user_project: str | None = None
    proxy: str | None = field(default=None, repr=False)
    sources: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, properties: Mapping[str, str], bucket: str) -> GoogleSettings:
        """Return the settings of a bucket."""
        search = SettingSearch(properties)
        search.refuse(_REFUSED)
        token = search.text("token", [GCS_TOKEN])
        key_file, anonymous = None, GCS_NO_AUTH.of(properties)
        if anonymous:
            search.sources["anonymous"] = GCS_NO_AUTH.key
        elif token is None:
            key_file, anonymous = _by_hadoop(search, bucket)
        return cls(
            endpoint=search.text("endpoint", [GCS_ENDPOINT], ["fs.gs.storage.root.url"]),
            token=token,
            token_expires_at_ms=GCS_TOKEN_EXPIRY.of(properties),
            key_file=key_file,
            anonymous=anonymous,
            user_project=search.text(
                "user_project", [GCS_USER_PROJECT], ["fs.gs.requester.pays.project.id"]
            ),
            proxy=_proxy(search),
            sources=search.sources,
        )


def _by_hadoop(search: SettingSearch, bucket: str) -> tuple[str | None, bool]:
    """Return the key file, if any, and whether requests are anonymous."""
    if search.text("anonymous", [], ["google.cloud.auth.null.enable"]) == "true":
        return None, True
    search.sources.pop("anonymous", None)
    kind = (search.text("kind", [], ["fs.gs.auth.type", "google.cloud.auth.type"]) or "").lower()
    if kind == "unauthenticated":
        search.sources["anonymous"] = search.sources["kind"]
        return None, True
    key_file = search.text("key_file", [], _KEY_FILES)
    if kind == "service_account_json_keyfile" and key_file is None:
        raise ConfigurationError(
            f"gs://{bucket}: {search.sources['kind']} demands a service account's key file, but "
            "none is set",
            hint=f"Set {_KEY_FILES[0]}, or GOOGLE_APPLICATION_CREDENTIALS.",
        )
    if kind not in {*_FOUND, "service_account_json_keyfile"}:
        raise ConfigurationError(
            f"gs://{bucket}: {search.sources['kind']}={kind.upper()} is not served",
            hint=f"Set {_KEY_FILES[0]}, or GOOGLE_APPLICATION_CREDENTIALS.",
        )
    if kind in _FOUND - {""}:
        search.sources.pop("key_file", None)
        return None, False
    return key_file, False


def _proxy(search: SettingSearch) -> str | None:
    said = search.text("proxy", [], ["fs.gs.proxy.address"])
    return said if said is None or "://" in said else f"http://{said}"


def google_signer(settings: GoogleSettings) -> Signer:
    """Return the signer for a bucket's requests."""
    if settings.anonymous:
        return _Nobody("nobody", settings.sources.get("anonymous", "gcs.no-auth"))
    if settings.token is not None:
        return _Token(settings)
    return _Renewed(settings)


class _Nobody(Signer):
    """A signer for anonymous access to public buckets."""

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        return request


class _Token(Signer):
    """A signer with a given token, which is not renewed."""

    def __init__(self, settings: GoogleSettings) -> None:
        super().__init__("a token", settings.sources.get("token", "gcs.oauth2.token"))
        remember_secret(settings.token)
        self._token = settings.token
        self._expires_at_ms = settings.token_expires_at_ms

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        if self._expires_at_ms is not None and self._expires_at_ms <= time.time() * 1000:
            raise ConfigurationError(
                "The token gcs.oauth2.token has expired, as gcs.oauth2.token-expires-at says",
                hint="Set a new one, or neither: the machine's own credentials are renewed.",
            )
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


class _Renewed(Signer):
    """A signer with a key file or the default: variables, a login, the metadata service."""

    def __init__(self, settings: GoogleSettings) -> None:
        auth = optional_library("google.auth", "Google's store needs google-auth", "icecomb[gcs]")
        from google.auth import exceptions
        from google.auth.transport.requests import Request
        from google.oauth2 import service_account

        self._lock = threading.Lock()
        try:
            self._request = Request(limited_session())
            self._credentials: Any
            if settings.key_file is not None:
                kind: Any = service_account.Credentials
                self._credentials = kind.from_service_account_file(
                    settings.key_file, scopes=[_SCOPE]
                )
            else:
                self._credentials, _ = auth.default(scopes=[_SCOPE], request=self._request)
        except IcecombError:
            raise
        except OSError as error:
            source = settings.sources.get("key_file", "its name")
            raise ConfigurationError(
                f"The key file {error.filename or 'of google-auth'} cannot be read: "
                f"{told(str(error.strerror or error))}",
                hint=_REMEDY if settings.key_file is None else f"Check {source}.",
            ) from None
        except (exceptions.GoogleAuthError, *UNREADABLE) as error:
            # google-auth believes that a file or an answer has each member
            raise ConfigurationError(
                f"No credentials were found for Google's store: {_line(error)}", hint=_REMEDY
            ) from None
        email = getattr(self._credentials, "service_account_email", None)
        who = email or "the application's default"
        super().__init__(who, settings.sources.get("key_file", "what google-auth finds"))

    def close(self) -> None:
        """Implement `Signer.close`."""
        self._request.session.close()

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        from google.auth import exceptions

        try:
            # one thread renews while the others wait
            with self._lock:
                self._credentials.before_request(
                    self._request, request.method, request.url, request.headers
                )
                remember_secret(self._credentials.token, is_renewed=True)
        except (exceptions.GoogleAuthError, *UNREADABLE) as error:
            raise _not_renewed(error) from None
        return request


def _not_renewed(error: Exception) -> IcecombError:
    return FileIOError(
        f"Google did not renew the access token: {_line(error)}",
        hint="Log in again, or check that the service account and its key still exist.",
    )


def _line(error: Exception) -> str:
    text = told(str(error.args[0] if error.args else error)).rstrip(".")
    return text if not isinstance(error, LookupError) else f"{text} is missing"
