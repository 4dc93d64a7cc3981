"""A secured cluster: tickets, delegation tokens, and what is said without either."""

from __future__ import annotations

import base64
import json

import pytest
from requests import Session

from icecomb.format.errors import FileIOError, IcecombError
from icecomb.format.storage.delegation_token import find_token, give_tokens
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.hdfs.spnego import SpnegoAuth
from tests.peers.listener import Listener

pytestmark = pytest.mark.full("a cluster with Kerberos")


@pytest.fixture
def secured(secured_hdfs):
    return secured_hdfs


@pytest.fixture
def kdc(secured_hdfs):
    return secured_hdfs.kdc


@pytest.fixture
def properties(secured, kdc, monkeypatch):
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.configuration))
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere")
    return {**secured.client_settings, "hadoop.security.authentication": "kerberos"}


@pytest.fixture
def keytab(kdc):
    return {
        "hdfs.kerberos.principal": "hdfs/localhost@TEST.LAB",
        "hdfs.kerberos.keytab": str(kdc.keytab("hdfs")),
    }


def test_a_keytab_opens_a_secured_cluster(secured, properties, keytab):
    io = FileIO({**properties, **keytab})
    io.create(f"{secured.uri}/x", b"data")
    assert io.read(f"{secured.uri}/x") == b"data"
    assert [each.size for each in io.list(secured.uri)] == [4]


def test_a_delegation_token_is_as_good_as_a_ticket(
    secured, properties, keytab, tmp_path, monkeypatch
):
    FileIO({**properties, **keytab}).create(f"{secured.uri}/y", b"data")
    with Session() as session:
        session.auth = SpnegoAuth(*keytab.values())
        address = (
            f"http://localhost:{secured.http['nn1']}/webhdfs/v1/?op=GETDELEGATIONTOKEN&renewer=hdfs"
        )
        text = session.get(address, timeout=30).json()["Token"]["urlString"]
    written = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    file = tmp_path / "tokens"
    file.write_bytes(b"HDTS\0\1" + b"\5alias" + written + b"\0")
    found = find_token(str(file), "WEBHDFS delegation")
    assert found is not None
    assert found.url_text == text
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(file))
    io = FileIO({**properties, "hdfs.user": "by-token"})
    assert io.read(f"{secured.uri}/y") == b"data"


def test_without_a_ticket_the_way_to_get_one_is_told(secured, properties):
    with pytest.raises(IcecombError) as caught:
        FileIO(properties).read(f"{secured.uri}/x")
    assert "kinit, or name a principal and its keytab: hdfs.kerberos.principal" in str(caught.value)
    with pytest.raises(
        FileIOError, match=f"localhost:{secured.http['nn1']} rejected the login"
    ) as refused:
        FileIO({**properties, "hadoop.security.authentication": "simple"}).read(f"{secured.uri}/x")
    assert "hadoop.security.authentication=kerberos" in str(refused.value)


def test_the_native_engine_reads_and_writes_by_a_keytab(secured, properties, keytab):
    native = {"hdfs.engine": "native", "ipc.client.fallback-to-simple-auth-allowed": "true"}
    io = FileIO({**properties, **keytab, **native})
    io.create(f"{secured.uri}/native", b"data" * 1000)
    assert io.read(f"{secured.uri}/native") == b"data" * 1000
    assert FileIO({**properties, **keytab}).size(f"{secured.uri}/native") == 4000


def test_the_native_engine_without_a_ticket_says_how_to_get_one(properties, secured):
    native = {"hdfs.engine": "native", "ipc.client.fallback-to-simple-auth-allowed": "true"}
    with pytest.raises(IcecombError) as caught:
        FileIO({**properties, **native}).read(f"{secured.uri}/x")
    assert "kinit" in str(caught.value)


def test_tokens_held_in_memory_are_shown_as_they_are_at_each_call(secured, properties, keytab):
    """A cancelled token is refused; what takes its place is shown without anything made anew."""
    FileIO({**properties, **keytab}).create(f"{secured.uri}/memory", b"data")
    name_node = f"http://localhost:{secured.http['nn1']}/webhdfs/v1/"
    with Session() as session:
        session.auth = SpnegoAuth(*keytab.values())

        def new_token():
            asked = f"{name_node}?op=GETDELEGATIONTOKEN&renewer=hdfs"
            return session.get(asked, timeout=30).json()["Token"]["urlString"]

        first, second = new_token(), new_token()
        source = give_tokens("tests", [first])
        io = FileIO({**properties, "hadoop.token.files": source})
        assert io.read(f"{secured.uri}/memory") == b"data"
        session.put(f"{name_node}?op=CANCELDELEGATIONTOKEN&token={first}", timeout=30)
        with pytest.raises(FileIOError, match=r"rejected the login|token"):
            io.read(f"{secured.uri}/memory")
        give_tokens("tests", [second])
        assert io.read(f"{secured.uri}/memory") == b"data"


def test_a_server_with_a_ticket_acts_for_its_users(secured, properties, keytab):
    io = FileIO({**properties, **keytab, "hdfs.proxy-user": "alice"})
    with pytest.raises(FileIOError, match="user=alice"):
        io.create(f"{secured.uri}/of-alice", b"data")


def test_a_server_without_the_key_of_the_service_is_not_believed(secured, properties, keytab):
    """It gets a ticket that it cannot read, so it has no proof but another server's."""
    answered = []
    with Session() as session:
        session.auth = SpnegoAuth(*keytab.values())
        url = f"http://localhost:{secured.http['nn1']}/webhdfs/v1/?op=LISTSTATUS"
        answered.append(session.get(url, timeout=30).headers["WWW-Authenticate"])
    for said in ("Negotiate", answered[0]):
        impostor = Listener()
        status = json.dumps({"FileStatuses": {"FileStatus": []}}).encode()
        found = (200, {"Content-Type": "application/json", "WWW-Authenticate": said}, status)
        impostor.answer = lambda *_, server=impostor, found=found: (
            found
            if "Authorization" in server.requests[-1]
            else (401, {"WWW-Authenticate": "Negotiate"}, b"")
        )
        location = f"webhdfs://localhost:{impostor.port}/"
        with pytest.raises(IcecombError):
            FileIO({**properties, **keytab, "warehouse": location}).folders(location)
        impostor.close()
        assert "Authorization: Negotiate" in impostor.requests[-1]
