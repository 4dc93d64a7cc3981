"""Credentials go to whom they are for: a host that metadata names, and no setting, is sent none."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from icecomb.format.errors import IcecombError
from icecomb.format.storage.delegation_token import DelegationToken, token_file
from icecomb.format.storage.file_io import FileIO
from tests.peers.listener import Listener

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
CASES = [pytest.param(case, id=name) for name, case in HDFS.items()]


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
    io = FileIO({key: value.format(port=listener.port) for key, value in settings.items()})
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
    tokens = tmp_path / "tokens"
    tokens.write_bytes(TOKEN)
    for name, value in case.variables.items():
        monkeypatch.setenv(name, value.format(tokens=tokens))
    text = sent(case, listener, {})
    assert case.mark not in text
    assert MARKER not in text
    assert "authorization" not in text.lower()
    assert case.mark in sent(case, listener, case.naming)
