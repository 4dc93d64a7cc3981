"""A name node that a ticket was shown to proves who it is before its answer counts."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from icecomb.format.errors import FileIOError
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.hdfs import spnego
from icecomb.format.storage.kerberos import GssError
from tests.peers.listener import Listener


class Context:
    """What the system's library does with the right key at the other end; a gate has no Kerberos."""

    def __init__(self, service: str, *_: Any) -> None:
        assert service == "HTTP/127.0.0.1"
        self.established = False

    def step(self, token: bytes | None) -> bytes:
        if token is None:
            return b"ticket"
        if token != b"proof":
            raise GssError("no Kerberos conversation", hint="")
        self.established = True
        return b""


def proof(token: bytes) -> dict[str, str]:
    return {"WWW-Authenticate": f"Negotiate {base64.b64encode(token).decode()}"}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    """Asks for a ticket, and answers what `.after` is."""
    monkeypatch.setattr(spnego, "SecurityContext", Context)
    found: Any = Listener()
    shown = f"Authorization: Negotiate {base64.b64encode(b'ticket').decode()}"
    asks = (401, {"WWW-Authenticate": "Negotiate"}, b"")
    found.answer = lambda *_: found.after if shown in found.requests[-1] else asks
    yield found
    found.close()


def ask(server: Listener) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        session.auth = spnego.SpnegoAuth()
        session.auth.proven.add(server.address)  # at another login
        return session.get(f"http://{server.address}/webhdfs/v1/x", allow_redirects=False)


JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize("status", [200, 307, 403, 404, 500])
def test_an_answer_with_proof_is_believed(server: Any, status: int) -> None:
    server.after = (status, {**JSON, **proof(b"proof")}, b"{}")
    assert ask(server).status_code == status


@pytest.mark.parametrize("status", [200, 307, 403, 404, 500])
@pytest.mark.parametrize("headers", [{}, {"WWW-Authenticate": "Negotiate"}, proof(b"of another")])
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
def test_an_answer_without_proof_is_not(
    server: Any, status: int, headers: dict[str, str], kind: str
) -> None:
    server.after = (status, {"Content-Type": kind, **headers}, b"{}")
    with pytest.raises(GssError, match=r"does not prove that it is HTTP/127|no Kerberos"):
        ask(server)


def test_who_refuses_the_login_need_not_prove_anything(server: Any) -> None:
    server.after = (401, {"Content-Type": "text/html"}, b"who?")
    assert ask(server).status_code == 401


def test_who_refuses_a_login_by_another_status_is_quoted_though_not_believed(server: Any) -> None:
    """Hadoop answers 403 to a ticket that it cannot read."""
    server.after = (403, {"Content-Type": "text/html"}, b"GSSException: clock skew")
    with pytest.raises(GssError, match=r"its answer \(HTTP 403\) is not believed") as refused:
        ask(server)
    assert "klist" in refused.value.hint


@pytest.mark.parametrize("kind", ["text/html", "application/json", "application/octet-stream"])
def test_a_file_is_not_missing_because_a_server_without_proof_says_so(
    server: Any, kind: str
) -> None:
    told = {"exception": "FileNotFoundException", "javaClassName": "x", "message": "no"}
    body = json.dumps({"RemoteException": told}).encode()
    server.answer = lambda *_: (404, {"Content-Type": kind}, body)
    with pytest.raises(GssError, match="does not prove"):
        FileIO(KERBEROS).exists(f"webhdfs://{server.address}/x")


KERBEROS = {"hadoop.security.authentication": "kerberos"}
FALLBACK = "ipc.client.fallback-to-simple-auth-allowed"


def test_a_name_node_that_asks_for_no_login_is_believed_only_where_settings_allow_it(
    server: Any,
) -> None:
    status = {"pathSuffix": "", "type": "FILE", "length": 7, "modificationTime": 1, "fileId": 1}
    body = json.dumps({"FileStatus": status}).encode()
    server.after = (200, {**JSON, **proof(b"proof")}, body)
    location = f"webhdfs://{server.address}/x"
    assert FileIO({**KERBEROS, "warehouse": location}).size(location) == 7
    server.answer = lambda *_: (200, JSON, body)
    with pytest.raises(GssError, match="does not prove") as refused:
        FileIO(KERBEROS).size(location)
    assert f"{FALLBACK}=true" in refused.value.hint
    assert FileIO({**KERBEROS, FALLBACK: "true"}).size(location) == 7
    assert FileIO({}).size(location) == 7
    token = {"hdfs.delegation-token": "t", "warehouse": location}
    assert FileIO({**KERBEROS, **token}).size(location) == 7


@pytest.mark.parametrize(
    "named",
    [
        {},
        {"fs.defaultFS": "hdfs://127.0.0.1:8020"},
        {"fs.defaultFS": "hdfs://127.0.0.1:{port}", "dfs.http.policy": "HTTPS_ONLY"},
        {"warehouse": "swebhdfs://{address}/lake"},
    ],
)
def test_no_location_has_a_ticket_shown_without_tls_to_a_server_that_settings_do_not_name_so(
    server: Any, named: dict[str, str]
) -> None:
    """Who owns the network would show it to a server of that host that demands TLS."""
    server.after = (200, {**JSON, **proof(b"proof")}, b"{}")
    place = {"address": server.address, "port": server.port}
    settings = {key: value.format_map(place) for key, value in named.items()}
    location = f"webhdfs://{server.address}/x"
    with pytest.raises(FileIOError, match="rejected the login") as refused:
        FileIO({**KERBEROS, **settings}).size(location)
    assert "mapreduce.job.hdfs-servers can name this" in refused.value.hint
    assert not any("Authorization" in each for each in server.requests)
