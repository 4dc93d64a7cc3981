"""Secrets are in no log line, no error and no traceback, whatever servers answer or fail to."""

from __future__ import annotations

import logging
import re
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

from icecomb.catalog.configuration.catalog_property import CATALOG_PROPERTIES
from icecomb.format.errors import IcecombError
from icecomb.format.log_filter import hide_secrets
from icecomb.format.secret import HIDDEN, is_secret, remember_secret, without_secrets
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.object_store import creation
from tests.peers.google_key import write_key_file
from tests.peers.listener import Listener
from tests.peers.ports import closed_port

MARKER = "bWFya2Vy"
UNSEEN = "dW5zZWVu"
"""No test remembers it as a secret."""
"""The secret, which can be a key in Base64, too."""
PLAIN = {"adls.blob-storage-scheme": "http"}


class Case(NamedTuple):
    """Settings with secrets, and a location; `{host}` is the server."""

    settings: dict[str, str]
    location: str


AZURE = "abfs://box@account.dfs.core.windows.net/x"
WEB = "webhdfs://{host}/x"
CASES = {
    "hdfs.delegation-token": Case({"hdfs.delegation-token": MARKER, "warehouse": WEB}, WEB),
    "hdfs.delegation-token of two name nodes": Case(
        {
            "hdfs.delegation-token": MARKER, "dfs.nameservices": "ns", "dfs.ha.namenodes.ns": "a,b",
            "dfs.namenode.http-address.ns.a": "{host}", "dfs.namenode.http-address.ns.b": "{host}",
            "dfs.client.failover.max.attempts": "2",
        },
        "hdfs://ns/x",
    ),
    "adls.token": Case({**PLAIN, "adls.account-host": "{host}", "adls.token": MARKER}, AZURE),
    "adls.sas-token": Case(
        {**PLAIN, "adls.account-host": "{host}", "adls.sas-token": f"sv=1&sig={MARKER}&se=2"}, AZURE
    ),
    "adls.account-key": Case(
        {**PLAIN, "adls.account-host": "{host}", "adls.account-key": MARKER}, AZURE
    ),
    "adls.connection-string": Case(
        {
            "adls.connection-string": f"BlobEndpoint=http://{{host}};AccountKey={MARKER};"
            f"SharedAccessSignature=sig={MARKER}",
        },
        AZURE,
    ),
    "adls.client-secret": Case(
        {
            **PLAIN, "adls.account-host": "{host}", "adls.client-secret": MARKER,
            "adls.client-id": "c", "adls.tenant-id": "t",
        },
        AZURE,
    ),
    "gcs.oauth2.token": Case(
        {"gcs.service.host": "http://{host}", "gcs.oauth2.token": MARKER}, "gs://bucket/x"
    ),
    "s3.secret-access-key": Case(
        {
            "s3.endpoint": "http://{host}", "s3.access-key-id": "id",
            "s3.secret-access-key": MARKER, "s3.session-token": MARKER,
        },
        "s3://bucket/x",
    ),
}  # fmt: skip
TOLD = {
    "hadoop.token.files", "gcs.oauth2.token-expires-at", "hive.metastore.token.signature",
    "s3.access-key-id", "s3.sse.key", "s3.sse-kms-key-id",
}  # fmt: skip
"""Settings whose names sound secret: names of files, keys and times."""


def test_each_secret_setting_is_tried() -> None:
    tried = {key for case in CASES.values() for key in case.settings}
    assert {key for key in CATALOG_PROPERTIES if is_secret(key)} - tried - TOLD == set()


def _echo(status: int, kind: str, body: str = "{}") -> Callable[[Listener, str], Any]:
    """Answer with the request's own URL, as gateways do."""
    return lambda server, path: (
        status,
        {"Content-Type": kind, "Location": f"http://{server.address}{path}"},
        body.replace("{}", f"http://{server.address}{path}").encode(),
    )


REMOTE = '{"RemoteException": {"exception": "%s", "message": "no {}"}}'
ANSWERS = {
    "a page to log in": _echo(200, "text/html", "<html>{}"),
    "a refusal": _echo(403, "application/json", REMOTE % "AccessControlException"),
    "a standby": _echo(403, "application/json", REMOTE % "StandbyException"),
    "a rejected login": _echo(401, "application/json", REMOTE % "SecurityException"),
    "a failure": _echo(500, "application/xml", "<Error><Message>{}</Message></Error>"),
    "a redirection": _echo(307, "application/octet-stream"),
    "what is no header": lambda *_: (200, {"x": "\n y: \0"}, b""),
    "another length": lambda *_: (200, {"Transfer-Encoding": "chunked"}, b"what is this\r\n"),
}


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> SimpleNamespace:
    """Formats what is logged at DEBUG by everybody as handlers do."""
    caplog.set_level(logging.DEBUG)
    return SimpleNamespace(
        text=lambda: "\n".join(map(caplog.handler.format, caplog.records)), clear=caplog.clear
    )


def used(case: Case, host: str) -> str:
    """What errors say when a server is asked for something."""
    said = []
    io = FileIO(
        {
            "io.object-store.max-attempts": "2",
            "dfs.webhdfs.socket.read-timeout": "200ms",
            "s3.request-timeout": "1s",
            **{key: value.replace("{host}", host) for key, value in case.settings.items()},
        }
    )
    location = case.location.replace("{host}", host)
    for ask in (
        io.read,
        io.size,
        io.delete,
        lambda each: [*io.list(each)],
        lambda each: io.create(each, b"x"),
        lambda each: io.rename(each, f"{each}2"),
    ):
        with suppress(IcecombError):
            try:
                ask(location)
            except IcecombError as error:
                said += [repr(error), *traceback.format_exception(error)]
                raise
    io.close()
    return "".join(said)


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = socket.getaddrinfo

    def only_here(host: Any, *others: Any, **more: Any) -> Any:
        if host != "127.0.0.1":
            raise socket.gaierror(host)
        return resolve(host, *others, **more)

    monkeypatch.setattr(socket, "getaddrinfo", only_here)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr(creation, "FIRST_S", 0.0)
    for variable in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(variable, raising=False)


SLOW = pytest.mark.full("only these two are in URLs; the gate has all with servers that are down")
IN_URLS = ("hdfs.delegation-token", "adls.sas-token")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[] if case in IN_URLS else [SLOW])
        for case in CASES
        if case != "adls.client-secret"  # without a token of Azure's nothing is asked
    ],
)
def test_no_secret_is_told_by_servers_that_lie(case: str, told: Any) -> None:
    for name, answer in ANSWERS.items():
        server = Listener()
        server.answer = lambda _, path, server=server, answer=answer: answer(server, path)
        said = used(CASES[case], server.address)
        server.close()
        assert server.requests
        assert MARKER not in said, name
        assert MARKER not in told.text(), name
        told.clear()


@pytest.mark.parametrize("case", CASES)
def test_no_secret_is_told_by_servers_that_are_down(case: str, told: Any) -> None:
    with closed_port() as port:
        said = used(CASES[case], f"127.0.0.1:{port}")
    assert said
    assert MARKER not in said
    assert MARKER not in told.text()


def test_no_secret_is_told_by_data_nodes_that_are_down(told: Any) -> None:
    """The name node puts a token for the data node into the address, which no setting has."""
    server = Listener()
    with closed_port() as port:
        node = f"http://127.0.0.1:{port}/webhdfs/v1/x?op=OPEN&delegation={UNSEEN}&data=true"
        head = {"Location": node, "Content-Type": "application/octet-stream"}
        server.answer = lambda *_: (307, head, b"")
        said = used(CASES["hdfs.delegation-token"], server.address)
    server.close()
    assert f"127.0.0.1:{port}" in said + told.text()
    for secret in (MARKER, UNSEEN):
        assert secret not in said
        assert secret not in told.text()


@pytest.mark.parametrize(
    "line",
    [
        "body {'Action': 'AssumeRoleWithWebIdentity', 'WebIdentityToken': 'bWFya2Vy'}",
        "Action=AssumeRoleWithWebIdentity&WebIdentityToken=bWFya2Vy&Version=2011",
        "headers {'x-amz-sso_bearer_token': b'bWFya2Vy', 'Host': 'x'}",
        '{"roleCredentials": {"secretAccessKey": "bWFya2Vy", "sessionToken": "bWFya2Vy"}}',
        "{'accessToken': 'bWFya2Vy', 'refreshToken': 'bWFya2Vy', 'clientSecret': 'bWFya2Vy'}",
        "Authorization: Bearer bWFya2Vy",
        "'Authorization': b'bWFya2Vy'",
        "http%3A//host/x%3Fop%3DOPEN%26delegation%3DbWFya2Vy",
        "u%3Dhttp%253A%252F%252Fhost%253Fsig%253DbWFya2Vy",
        "delegation: bWFya2Vy",
        "authorization=Bearer bWFya2Vy",
        "<Token-0>bWFya2Vy</Token-0>",
    ],
)
def test_what_libraries_log_of_credentials_that_they_find_themselves_is_hidden(line: str) -> None:
    found = without_secrets(line.replace(MARKER, UNSEEN))
    assert UNSEEN not in found
    assert HIDDEN in found


SPELLINGS = {
    "plain": str,
    "for a URL": lambda text: quote(text, safe=""),
    "for a URL in lower case": lambda text: quote(text, safe="").replace("%2B", "%2b"),
    "for a URL twice": lambda text: quote(quote(text, safe=""), safe=""),
    "for HTML": lambda text: text.replace("=", "&#x3d;").replace("+", "&#43;"),
    "for JSON": lambda text: text.replace("=", "\\u003d").replace("+", "\\u002B"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("value", "secret"),
    [
        ("bWFya2Vyb+Fya2Vy/==", "bWFya2Vyb+Fya2Vy/=="),
        ("sv=1&sig=bWFya2Vyb%2BFya2Vy%2F%3D%3D&se=2", "bWFya2Vyb+Fya2Vy/=="),
        ("AccountName=a;AccountKey=bWFya2Vyb+Fya2Vy/==;X=y", "bWFya2Vyb+Fya2Vy/=="),
    ],
)
def test_a_known_secret_is_hidden_however_it_is_spelled(value, secret, spelling) -> None:
    remember_secret(value)
    found = without_secrets(f"who sent us this? {SPELLINGS[spelling](secret)} here")
    assert found == f"who sent us this? {HIDDEN} here"


def test_a_configured_secret_is_known_however_many_tokens_come_after_it() -> None:
    remember_secret("Y29uZmlndXJlZA==")
    for number in range(300):
        remember_secret(f"renewed-{number}", is_renewed=True)
    for number in range(50):
        remember_secret(f"configured-{number}")
    remember_secret("renewed-299", is_renewed=True)
    found = without_secrets("Y29uZmlndXJlZA== renewed-299")
    assert found == f"{HIDDEN} {HIDDEN}"
    assert without_secrets("renewed-0") == "renewed-0"


def test_the_secrets_of_a_file_io_are_known() -> None:
    with closing(FileIO({"gcs.oauth2.token": "ya29.c0unted", "gcs.project-id": "my-project"})):
        assert without_secrets("ya29.c0unted of my-project") == f"{HIDDEN} of my-project"


def test_loggers_below_those_of_a_library_tell_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    below = logging.getLogger("botocore.handlers.deeper")
    hide_secrets("botocore")
    with caplog.at_level(logging.DEBUG):
        below.debug("<Token-0>%s</Token-0>", MARKER)
    assert HIDDEN in caplog.text
    assert MARKER not in caplog.text


class Renewal(NamedTuple):
    """How a store is asked whose credentials are renewed, and what is sent for them.

    Attributes:
        secret: A pattern, whose group is the secret in the request.
    """

    io: dict[str, str]
    location: str
    variables: dict[str, str]
    secret: str


ROLE = "arn:aws:iam::123456789012:role/reader"
SOURCES = {
    "a machine of Azure": Renewal(
        {}, AZURE, {"IDENTITY_ENDPOINT": "http://{host}/x", "IDENTITY_HEADER": "aWRlbnRpdHk="},
        "(?i)X-IDENTITY-HEADER: (.+)",
    ),
    "a key file of Google": Renewal(
        {"fs.gs.auth.service.account.json.keyfile": "{key}"}, "gs://bucket/x", {}, "assertion=([^&']+)",
    ),
    "a web identity of AWS": Renewal(
        {"s3.region": "us-east-1"}, "s3://bucket/x",
        {
            "AWS_ENDPOINT_URL_STS": "http://{host}", "AWS_ROLE_ARN": ROLE,
            "AWS_WEB_IDENTITY_TOKEN_FILE": "{token}", "AWS_CONFIG_FILE": "{token}.none",
            "AWS_SHARED_CREDENTIALS_FILE": "{token}.none",
        },
        "WebIdentityToken=([^&']+)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_no_secret_is_told_that_who_gives_tokens_repeats(
    source: str,
    told: SimpleNamespace,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case, secrets = SOURCES[source], []
    json = '{"error": "x", "error_description": "what is %s?", "message": "what is %s?"}'
    xml = "<ErrorResponse><Error><Code>Invalid</Code><Message>what is %s?</Message></Error></ErrorResponse>"

    def answer(*_: str) -> Any:
        found = re.search(case.secret, server.requests[-1])
        secrets.append(found[1] if found else "")
        body = (xml if "AWS" in source else json).replace("%s", secrets[-1])
        return 400, {"Content-Type": "application/json"}, body.encode()

    server = Listener(answer)
    (tmp_path / "token").write_text("b2YgdGhlIHBvZA")
    uri = f"http://{server.address}/token"
    names = {
        "{host}": server.address,
        "{token}": str(tmp_path / "token"),
        "{key}": write_key_file(tmp_path / "key.json", uri),
    }

    def named(values: dict[str, str]) -> dict[str, str]:
        return {
            key: re.sub(r"\{\w+\}", lambda found: names[found[0]], value)
            for key, value in values.items()
        }

    # it sends records to no others unless it has its own
    monkeypatch.setattr(logging.getLogger("google"), "handlers", [caplog.handler])
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in named(case.variables).items():
        monkeypatch.setenv(variable, value)
    said = used(Case(named(case.io), case.location), server.address)
    server.close()
    logged = told.text()
    assert "what is" in said + logged
    assert secrets
    assert all(secrets)
    records = [str(vars(record)) for record in caplog.records]
    for text in (said, logged, *records):
        assert [secret for secret in secrets if secret[:100] in text] == []
