"""Delegation tokens are shown to the cluster that they are for, and to no other."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from icecomb.format.storage.delegation_token import DelegationToken, give_tokens, token_file
from icecomb.format.storage.hdfs.address import resolve_location
from icecomb.format.storage.hdfs.session import HdfsSession
from tests.format.storage.hdfs.test_address import FEDERATION, HA
from tests.peers.listener import Listener

ADDRESSES = {
    "a": "10.0.0.1", "b": "10.0.0.2", "c": "10.0.0.3", "web": "10.0.0.4",
    "nn.corp.example": "10.0.0.9", "alias.corp.example": "10.0.0.9", "elsewhere": "10.9.9.9",
}  # fmt: skip
SINGLE = {"fs.defaultFS": "hdfs://nn.corp.example:8020"}
KERBEROS = {"hadoop.security.authentication": "kerberos"}
WEB, JOB = "WEBHDFS delegation", "HDFS_DELEGATION_TOKEN"


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(host: str, port: Any, *_: Any, **__: Any) -> Any:
        found = ADDRESSES.get(host, host)
        if not found[0].isdigit():
            raise socket.gaierror(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (found, port))]

    def known_as(host: str) -> Any:
        (*_, (address, _)) = resolved(host, 0)[0]
        names = [name for name, where in ADDRESSES.items() if where == address]
        return (names or [address])[0], names[1:], [address]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(socket, "gethostbyname", lambda host: resolved(host, 0)[0][4][0])
    monkeypatch.setattr(socket, "gethostbyaddr", known_as)


def token(service: str, kind: str = WEB) -> str:
    given = token_file(DelegationToken(b"id", b"password", service), kind)
    written = given[len(b"HDTS\0\1") + 1 + len(service or kind) : -1]
    return DelegationToken(b"", b"", written=written).url_text


def shown(properties: dict[str, str], location: str) -> str | None:
    session = HdfsSession(properties, resolve_location(location, properties))
    found = session._identity()({"op": "OPEN", "user.name": "me"})
    session.requests.close()
    return found.get("delegation")


def held(*tokens: str) -> dict[str, str]:
    return {"hadoop.token.files": give_tokens("tests", tokens)}


@pytest.mark.parametrize(
    ("service", "properties", "location"),
    [
        ("ha-hdfs:ns1", HA, "hdfs://ns1/x"),
        ("ha-hdfs:ns1", HA, "hdfs://b:8020/x"),
        ("ha-hdfs:ns1", HA, "webhdfs://b/x"),
        ("ha-webhdfs:ns1", HA, "webhdfs://ns1/x"),
        ("ha-swebhdfs:ns1", HA, "swebhdfs://ns1/x"),
        ("10.0.0.1:8020", HA, "hdfs://ns1/x"),
        ("10.0.0.2:8020", HA, "webhdfs://ns1/x"),
        ("10.0.0.1:9000", FEDERATION, "hdfs://ns1/x"),
        ("10.0.0.2:8020", FEDERATION, "hdfs://ns2/x"),
        ("10.0.0.2:8020", FEDERATION, "webhdfs://web:50071/x"),
        ("ns1:8020", FEDERATION, "hdfs://ns1/x"),
        ("10.0.0.9:8020", SINGLE, "/x"),
        ("NN.corp.example:8020", SINGLE, "hdfs://nn.corp.example/x"),
        ("10.0.0.9:8020", SINGLE, "hdfs://10.0.0.9:8020/x"),
        ("nn.corp.example:8020", SINGLE, "hdfs://10.0.0.9/x"),
        ("nn.corp.example:8020", SINGLE, "hdfs://alias.corp.example/x"),
        ("10.0.0.9:9870", SINGLE, "webhdfs://nn.corp.example/x"),
        ("ha-hdfs:ns2", {**HA, "fs.viewfs.mounttable.t.link./y": "hdfs://ns2/z"}, "viewfs://t/y/x"),
        # hosts that no setting names, but the token does
        ("10.0.0.9:8020", {}, "hdfs://nn.corp.example:8020/x"),
        ("10.0.0.9:8020", {}, "hdfs://10.0.0.9:8020/x"),
        ("alias.corp.example:8020", HA, "hdfs://alias.corp.example/x"),
    ],
)
def test_a_token_is_shown_to_its_cluster_however_both_are_spelled(service, properties, location):
    for kind in (WEB, "SWEBHDFS delegation", JOB):
        right = token(service, kind)
        wrong = token("ha-hdfs:another", kind)
        assert shown({**properties, **held(wrong, right)}, location) == right
    assert shown({**properties, "hdfs.delegation-token": right}, location) == right


@pytest.mark.parametrize("scheme", ["webhdfs", "swebhdfs"])
@pytest.mark.parametrize("service", ["nn.corp.example:8020", "10.0.0.9:8020"])
def test_a_name_that_reverse_dns_tells_is_not_believed(monkeypatch, scheme, service):
    """Whoever owns the zone of an address says any name; and that name leads elsewhere."""
    monkeypatch.setitem(ADDRESSES, "attacker.example", "10.6.6.6")
    told = ("attacker.example", [], ["10.0.0.9"])
    monkeypatch.setattr(socket, "gethostbyaddr", lambda _: told)
    location = f"{scheme}://attacker.example:{9870 if scheme == 'webhdfs' else 9871}/x"
    for settings in (SINGLE, KERBEROS | SINGLE):
        assert shown({**settings, **held(token(service))}, location) is None
        assert shown({**settings, "hdfs.delegation-token": token(service)}, location) is None


@pytest.mark.parametrize("service", ["nn.corp.example:8020", "10.0.0.9:8020"])
@pytest.mark.parametrize("settings", [{}, SINGLE, KERBEROS | SINGLE])
def test_over_tls_only_names_of_settings_are_believed(service, settings):
    """A certificate proves a name, and whoever owns another name has one for that."""
    held_token = held(token(service))
    assert shown({**settings, **held_token}, "swebhdfs://alias.corp.example:9871/x") is None
    if settings:
        assert shown({**settings, **held_token}, "swebhdfs://nn.corp.example:9871/x")


TLS = {"dfs.http.policy": "HTTPS_ONLY"}
BY_TLS = {"warehouse": "swebhdfs://nn.corp.example:9871/lake"}


@pytest.mark.parametrize(
    ("service", "properties", "location"),
    [
        ("ha-hdfs:ns1", {**HA, **TLS}, "webhdfs://ns1/x"),
        ("ha-hdfs:ns1", {**HA, **TLS}, "webhdfs://b/x"),
        ("10.0.0.1:9871", {**HA, **TLS}, "webhdfs://a:9871/x"),
        ("10.0.0.9:8020", {**SINGLE, **TLS}, "webhdfs://nn.corp.example:8020/x"),
        ("nn.corp.example:9871", {**SINGLE, **TLS}, "webhdfs://alias.corp.example:9871/x"),
        ("nn.corp.example:9871", BY_TLS, "webhdfs://nn.corp.example:9871/x"),
        ("10.0.0.9:8020", BY_TLS, "webhdfs://10.0.0.9:8020/x"),
    ],
)
def test_no_location_has_a_token_sent_without_tls_where_settings_ask_for_it(
    service, properties, location
):
    """Who owns the network would read it."""
    right = token(service)
    for settings in (held(right), {**KERBEROS, **held(right)}, {"hdfs.delegation-token": right}):
        assert shown({**properties, **settings}, location) is None


def test_where_settings_ask_for_tls_a_token_goes_over_it_or_to_what_they_name_without():
    for location in ("hdfs://ns1/x", "swebhdfs://b:9871/x"):
        right = token("ha-hdfs:ns1")
        assert shown({**HA, **TLS, **held(right)}, location) == right
    old = token("nn.corp.example:9870")
    named = {**BY_TLS, "mapreduce.job.hdfs-servers": "webhdfs://nn.corp.example:9870/"}
    assert shown({**named, **held(old)}, "webhdfs://nn.corp.example/x") == old


FOREIGN = ("webhdfs://attacker.example/x", "hdfs://attacker.example:8020/x", "hdfs://elsewhere/x")


@pytest.mark.parametrize("location", [*FOREIGN, "webhdfs://nn.corp.example:1234/x"])
@pytest.mark.parametrize("service", ["10.0.0.9:8020", "nn.corp.example:8020", "unknown:8020", ""])
@pytest.mark.parametrize("settings", [{}, SINGLE, KERBEROS | SINGLE, KERBEROS | HA])
def test_no_token_is_shown_to_a_host_that_neither_it_nor_a_setting_names(
    service, settings, location
):
    settings = {**settings, "dfs.nameservices": ""}
    assert shown({**settings, **held(token(service))}, location) is None
    assert shown({**settings, "hdfs.delegation-token": token(service)}, location) is None
    assert shown({**settings, "hdfs.delegation-token": "no token of Hadoop's"}, location) is None


@pytest.mark.parametrize(
    "named",
    [
        {"fs.defaultFS": "hdfs://elsewhere:8020"},
        {"fs.defaultFS": "webhdfs://elsewhere"},
        {"warehouse": "webhdfs://elsewhere/warehouse"},
        {"mapreduce.job.hdfs-servers": "hdfs://ns9, hdfs://elsewhere:9000"},
        {"dfs.namenode.http-address": "elsewhere:9870"},
        {"fs.viewfs.mounttable.t.linkFallback": "hdfs://elsewhere/"},
        {"dfs.nameservices": "far", "dfs.namenode.http-address.far": "elsewhere:9870"},
    ],
)
def test_a_token_of_unknown_service_is_shown_to_clusters_that_settings_name(named):
    where = "webhdfs://elsewhere/x"
    assert shown({**named, "hdfs.delegation-token": "t"}, where) == "t"
    only = token("192.168.0.1:8020")
    assert shown({**KERBEROS, **named, **held(only)}, where) == only
    assert shown({**KERBEROS, **named, **held(only, token("192.168.0.2:8020"))}, where) is None
    assert shown({**named, **held(only)}, where) is None


def test_a_token_of_one_cluster_is_not_shown_to_another_configured_one():
    for service in ("ha-hdfs:ns1", "10.0.0.1:8020", "a:8020"):
        mine = token(service)
        for settings in ({"hdfs.delegation-token": mine}, {**KERBEROS, **held(mine)}):
            assert shown({**HA, **settings}, "hdfs://ns1/x") == mine
            assert shown({**HA, **settings}, "hdfs://ns2/x") is None


@pytest.mark.parametrize("is_configured", [False, True])
def test_a_host_that_is_elsewhere_when_it_is_asked_gets_no_token(monkeypatch, is_configured):
    """Whoever owns the name may have said the name node's address at first."""
    listener = Listener()
    where = f"attacker.example:{listener.port}"
    monkeypatch.setitem(ADDRESSES, "attacker.example", "10.0.0.9")
    properties = held(token(f"10.0.0.9:{listener.port}"))
    if is_configured:
        properties["dfs.namenode.http-address"] = f"nn.corp.example:{listener.port}"
        properties["fs.defaultFS"] = "hdfs://nn.corp.example:8020"
    session = HdfsSession(properties, resolve_location(f"webhdfs://{where}/x", properties))
    assert "delegation" in session._identity()({})
    monkeypatch.setitem(ADDRESSES, "attacker.example", "127.0.0.1")
    with pytest.raises(OSError, match=r"is at 127.0.0.1, where no token is sent to"):
        session.requests.request("get", f"http://{where}/webhdfs/v1/x", params={"op": "OPEN"})
    session.requests.close()
    listener.close()
    assert listener.requests == []
