"""Whence the settings of Google's storage come."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.storage.object_store.google_settings import GoogleSettings

TYPE = "fs.gs.auth.type"
KEY_FILE = "fs.gs.auth.service.account.json.keyfile"


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({}, {}),
        (
            {"gcs.oauth2.token": "T", "gcs.oauth2.token-expires-at": "1700000000000", KEY_FILE: "/k"},
            {"token": "T", "token_expires_at_ms": 1_700_000_000_000},
        ),
        ({"gcs.no-auth": "true", KEY_FILE: "/k"}, {"anonymous": True}),
        ({"gcs.service.host": "http://h:1"}, {"endpoint": "http://h:1"}),
        ({"fs.gs.storage.root.url": "http://h:2"}, {"endpoint": "http://h:2"}),
        ({"gcs.user-project": "p"}, {"user_project": "p"}),
        ({"fs.gs.proxy.address": "proxy:3128"}, {"proxy": "http://proxy:3128"}),
        ({KEY_FILE: "/k"}, {"key_file": "/k"}),
        ({"google.cloud.auth.service.account.json.keyfile": "/k"}, {"key_file": "/k"}),
        ({TYPE: "SERVICE_ACCOUNT_JSON_KEYFILE", KEY_FILE: "/k"}, {"key_file": "/k"}),
        ({TYPE: "APPLICATION_DEFAULT", KEY_FILE: "/k"}, {}),
        ({TYPE: "COMPUTE_ENGINE"}, {}),
        ({TYPE: "UNAUTHENTICATED"}, {"anonymous": True}),
        ({"google.cloud.auth.null.enable": "true"}, {"anonymous": True}),
    ],
)  # fmt: skip
def test_who_asks_and_where(properties, found):
    settings = GoogleSettings.of(properties, "b")
    names = (
        "endpoint", "token", "token_expires_at_ms", "key_file", "anonymous", "user_project", "proxy",
    )  # fmt: skip
    said = {name: getattr(settings, name) for name in names}
    assert {name: value for name, value in said.items() if value} == found
    assert "'T'" not in repr(settings)


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({TYPE: "SERVICE_ACCOUNT_JSON_KEYFILE"}, "key file"),
        ({TYPE: "ACCESS_TOKEN_PROVIDER"}, "ACCESS_TOKEN_PROVIDER"),
        ({"gcs.encryption-key": "k"}, "gcs.encryption-key"),
        ({"gcs.impersonate.service-account": "a"}, "gcs.impersonate.service-account"),
        ({"gcs.oauth2.token-expires-at": "soon"}, "gcs.oauth2.token-expires-at"),
    ],
)
def test_what_makes_no_sense_or_is_not_served_is_refused_with_the_remedy(properties, words):
    with pytest.raises(ConfigurationError) as refused:
        GoogleSettings.of(properties, "b")
    assert words in refused.value.message
    assert refused.value.hint
