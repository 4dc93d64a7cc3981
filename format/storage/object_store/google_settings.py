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

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from icecomb.format.errors import ConfigurationError
from icecomb.format.storage.object_store.setting_search import SettingSearch
from icecomb.format.storage.storage_property import (
    GCS_ENDPOINT,
    GCS_NO_AUTH,
    GCS_TOKEN,
    GCS_TOKEN_EXPIRY,
    GCS_USER_PROJECT,
)

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
