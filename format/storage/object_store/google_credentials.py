"""Google credentials: a given token, or those that `google-auth` finds and renews."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from icecomb.format.errors import ConfigurationError, FileIOError, IcecombError
from icecomb.format.optional_library import optional_library
from icecomb.format.property.property import remember_secret
from icecomb.format.storage.object_store.client import UNREADABLE, told
from icecomb.format.storage.object_store.google_settings import GoogleSettings
from icecomb.format.storage.object_store.rest_client import Signer, limited_session

if TYPE_CHECKING:
    from requests import PreparedRequest

_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
_REMEDY: Final = (
    "Set GOOGLE_APPLICATION_CREDENTIALS, log in (gcloud auth application-default login) or set "
    "gcs.oauth2.token; gcs.no-auth=true reads public buckets."
)


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
        except OSError as error:
            raise ConfigurationError(
                f"The key file {settings.key_file} cannot be read: {error.strerror}",
                hint=f"Check {settings.sources.get('key_file', 'its name')}",
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
                remember_secret(self._credentials.token)
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
