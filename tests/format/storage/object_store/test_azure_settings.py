"""Whence the settings of Azure's storage come."""

from __future__ import annotations

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.storage.object_store.azure_settings import AzureSettings

HOST = "acct.dfs.core.windows.net"
TYPE = "fs.azure.account.auth.type"
OAUTH = "fs.azure.account.oauth2"
TENANT = "https://login.microsoftonline.com/tenant/oauth2/token"
AZURE = "org.apache.hadoop.fs.azurebfs.oauth2"


def of(properties, host=HOST):
    return AzureSettings.of(properties, "c", host)


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({}, {}),
        ({"adls.account-key": "K"}, {"account_key": "K"}),
        ({"adls.auth.shared-key.account.key": "K"}, {"account_key": "K"}),
        ({"adls.sas-token": "?sv=1&sig=x"}, {"sas_token": "sv=1&sig=x"}),
        ({"adls.sas-token": "all", "adls.sas-token.acct": "one"}, {"sas_token": "one"}),
        ({f"adls.sas-token.{HOST}": "one"}, {"sas_token": "one"}),
        ({"adls.token": "T", "adls.account-key": "K"}, {"token": "T"}),
        (
            {"adls.tenant-id": "t", "adls.client-id": "c", "adls.client-secret": "s"},
            {"tenant_id": "t", "client_id": "c", "client_secret": "s"},
        ),
        ({"adls.client-id": "c"}, {"client_id": "c"}),
        ({"adls.anon": "true", "adls.account-key": "K"}, {"anonymous": True}),
        ({"fs.azure.account.key": "all"}, {"account_key": "all"}),
        (
            {f"fs.azure.account.key.{HOST}": "K", "fs.azure.account.key": "all"},
            {"account_key": "K"},
        ),
        ({"fs.azure.account.key.acct.blob.core.windows.net": "K"}, {"account_key": "K"}),
        ({"fs.azure.account.key.other.dfs.core.windows.net": "K"}, {}),
        ({"fs.azure.sas.fixed.token": "sas"}, {"sas_token": "sas"}),
        ({"fs.azure.sas.c.acct.blob.core.windows.net": "sas"}, {"sas_token": "sas"}),
        ({"fs.azure.account.key": "K", "adls.sas-token": "sas"}, {"sas_token": "sas"}),
        (
            {
                TYPE: "OAuth",
                f"{OAUTH}.client.endpoint": TENANT,
                f"{OAUTH}.client.id.{HOST}": "c",
                f"{OAUTH}.client.secret": "s",
            },
            {
                "tenant_id": "tenant", "client_id": "c", "client_secret": "s",
                "authority": "https://login.microsoftonline.com",
            },
        ),
        (
            {TYPE: "OAuth", "fs.azure.account.oauth.provider.type": f"{AZURE}.MsiTokenProvider"},
            {"managed": True},
        ),
        (
            {
                TYPE: "OAuth",
                "fs.azure.account.oauth.provider.type": f"{AZURE}.WorkloadIdentityTokenProvider",
                f"{OAUTH}.token.file": "/t", f"{OAUTH}.client.id": "c", f"{OAUTH}.msi.tenant": "t",
            },
            {"token_file": "/t", "client_id": "c", "tenant_id": "t"},
        ),
    ],
)  # fmt: skip
def test_who_asks_is_said_by_one_place(properties, found):
    settings = of(properties)
    names = (
        "account_key", "sas_token", "token", "tenant_id", "client_id", "client_secret",
        "authority", "token_file", "managed", "anonymous",
    )  # fmt: skip
    said = {name: getattr(settings, name) for name in names}
    assert {name: value for name, value in said.items() if value} == found
    assert settings.account == "acct"
    assert not any(secret in repr(settings) for secret in ("'K'", "sas'", "'s'", "'T'"))


@pytest.mark.parametrize(
    ("properties", "host", "endpoint"),
    [
        ({}, HOST, "https://acct.blob.core.windows.net"),
        ({}, "acct.blob.core.chinacloudapi.cn", "https://acct.blob.core.chinacloudapi.cn"),
        ({"adls.account-name": "acct"}, "", None),
        (
            {"adls.blob-storage-authority": "127.0.0.1:1", "adls.blob-storage-scheme": "http"},
            HOST,
            "http://127.0.0.1:1/acct",
        ),
        ({"adls.blob-storage-authority": ".blob.x.net"}, HOST, "https://acct.blob.x.net"),
        (
            {"adls.connection-string": "AccountName=acct;AccountKey=K;EndpointSuffix=x.net"},
            HOST,
            "https://acct.blob.x.net",
        ),
        (
            {"adls.connection-string.acct": "AccountKey=K;BlobEndpoint=http://h:1/acct"},
            HOST,
            "http://h:1/acct",
        ),
    ],
)
def test_where_the_blobs_are(properties, host, endpoint):
    assert of(properties, host).endpoint == endpoint


def test_a_connection_string_says_who_asks_too():
    found = of({"adls.connection-string": "AccountName=acct;AccountKey=a+b/c=="}, "")
    assert (found.account, found.account_key) == ("acct", "a+b/c==")
    signed = of(
        {"adls.connection-string": "BlobEndpoint=https://h;SharedAccessSignature=sv=1&sig=x"}
    )
    assert (signed.account, signed.sas_token) == ("acct", "sv=1&sig=x")
    emulator = of({"adls.connection-string": "UseDevelopmentStorage=true"}, "")
    assert (emulator.account, emulator.endpoint) == (
        "devstoreaccount1",
        "http://127.0.0.1:10000/devstoreaccount1",
    )


@pytest.mark.parametrize(
    ("properties", "host", "words"),
    [
        ({}, "", "No storage account"),
        ({"adls.connection-string": "nonsense"}, HOST, "adls.connection-string"),
        ({"adls.client-secret": "s", "adls.client-id": "c"}, HOST, "no tenant_id"),
        ({TYPE: "SharedKey"}, HOST, "SharedKey"),
        ({TYPE: "SAS"}, HOST, "SAS"),
        ({f"{TYPE}.{HOST}": "Custom"}, HOST, "Custom"),
        ({TYPE: "OAuth"}, HOST, "no tenant_id"),
        (
            {TYPE: "OAuth", "fs.azure.account.oauth.provider.type": f"{AZURE}.RefreshTokenBasedTokenProvider"},
            HOST,
            "RefreshTokenBasedTokenProvider",
        ),
        ({"fs.azure.sas.token.provider.type": "com.example.Sas"}, HOST, "names a Java class"),
        (
            {f"fs.azure.encryption.encoded.client-provided-key.{HOST}": "k"},
            HOST,
            "client-provided-key",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_sense_or_is_not_served_is_refused_with_the_remedy(properties, host, words):
    with pytest.raises(ConfigurationError) as refused:
        of(properties, host)
    assert words in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    "host",
    [
        "acct.blob.core.windows.net",
        "Acct.dfs.core.windows.net",
        "acct.dfs.core.chinacloudapi.cn",
        "acct.blob.core.usgovcloudapi.net",
        "acct.z12.blob.storage.azure.net",
        "acct-secondary.blob.core.windows.net",
        "onelake.dfs.fabric.microsoft.com",
        "westeurope-onelake.blob.fabric.microsoft.com",
        "0f3a.z0f.dfs.fabric.microsoft.com",
    ],
)
def test_credentials_are_sent_to_all_clouds_of_azure(host):
    endpoint = of({"adls.token": "T"}, host).endpoint
    assert endpoint == f"https://{host.lower().replace('.dfs.', '.blob.')}"


@pytest.mark.parametrize("settings", [{}, {"adls.token": "T"}, {"adls.sas-token.acct": "sig=x"}])
@pytest.mark.parametrize(
    "host",
    [
        "acct.attacker.example",
        "acct.blob.core.windows.net.attacker.example",
        "attacker.example.blob.core.windows.net",
        "acct.blob.core.windows.net:8443",
        "core.windows.net",
        "acct",
    ],
)
def test_credentials_are_sent_to_no_other_host(settings, host):
    with pytest.raises(ConfigurationError, match="is not one of Azure's hosts") as refused:
        of(settings, host)
    assert f"adls.sas-token.{host}" in refused.value.hint
    assert of({**settings, "adls.anon": "true"}, host).anonymous
    naming = (
        {f"adls.sas-token.{host}": "sig=y"} if "." in host else {"warehouse": f"wasb://c@{host}"}
    )
    assert of({**settings, **naming}, host).endpoint == f"https://{host}"


def test_a_host_of_another_cloud_has_settings_of_its_own():
    keys = {
        "fs.azure.account.key.acct.dfs.core.windows.net": "K",
        "fs.azure.account.key.acct.dfs.core.usgovcloudapi.net": "G",
    }
    assert of(keys, "acct.blob.core.usgovcloudapi.net").account_key == "G"
    assert of(keys, "acct.blob.core.chinacloudapi.cn").account_key is None
    assert of(keys | {"adls.account-host": "127.0.0.1"}, "acct").account_key == "K"


@pytest.mark.parametrize("host", ["a@b", "2130706433:443#.x", "a?b", "a\\b", "a b", "[::1]"])
def test_what_is_not_the_name_of_a_host_is_refused(host):
    with pytest.raises(ConfigurationError, match="is not the name of a host"):
        of({"adls.blob-storage-authority": ".blob.own.store"}, host)
