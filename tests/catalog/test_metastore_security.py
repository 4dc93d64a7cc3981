"""Metastores that ask who we are, or speak TLS: Kerberos, delegation tokens, certificates."""

from __future__ import annotations

import base64
import socket
import subprocess
import threading
from contextlib import ExitStack

import pyarrow as pa
import pytest

from icecomb.catalog import load_catalog
from icecomb.catalog.hive.thrift.client import HiveClient
from icecomb.catalog.hive.thrift.failure import UnreachableError
from icecomb.catalog.hive.thrift.sasl import Digest, SaslError
from icecomb.catalog.hive.thrift.settings import ConnectionSettings
from icecomb.catalog.java import find_java
from icecomb.format.errors import ConfigurationError, MetastoreError
from icecomb.format.storage.delegation_token import DelegationToken, find_token
from tests.peers.sasl_proxy import SaslProxy
from tests.peers.second_try import started

REALM = "TEST.LAB"
SASL = {
    "hive.metastore.sasl.enabled": "true",
    "hive.metastore.kerberos.principal": f"hive/_HOST@{REALM}",
}


def client(uri, properties):
    return HiveClient(uri, ConnectionSettings.of(properties))


@pytest.fixture(scope="module")
def kdc(tmp_path_factory):
    from tests.peers.kdc import Kdc

    principals = ("hive/localhost", "alice", "impostor/localhost", "mallory")
    found = started(lambda: Kdc(tmp_path_factory.mktemp("kdc"), *principals).start())
    yield found
    found.stop()


@pytest.fixture
def alice(kdc, monkeypatch):
    """Has a ticket."""
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.configuration))
    monkeypatch.setenv("KRB5CCNAME", kdc.tickets("alice"))


@pytest.fixture(scope="module")
def kerberized_by_version(kdc, metastores, tmp_path_factory):
    """Metastores that let in who Kerberos knows, and encrypt on request; all start at once.

    4.0.1 is over the database of the plain one.
    """
    from tests.peers.hive_metastore import HiveMetastore, HiveMetastore2

    def asking(prefix):
        return {
            f"{prefix}.sasl.enabled": "true",
            f"{prefix}.kerberos.keytab.file": str(kdc.keytab("hive")),
            f"{prefix}.kerberos.principal": f"hive/localhost@{REALM}",
        }

    core = {
        "hadoop.security.authentication": "kerberos",
        "hadoop.security.auth_to_local": "RULE:[2:$1](.*)\nDEFAULT",
        "hadoop.rpc.protection": "authentication,privacy",
        "hadoop.proxyuser.alice.hosts": "*",
        "hadoop.proxyuser.alice.groups": "*",
    }
    jvm = [f"-Djava.security.krb5.conf={kdc.configuration}"]
    new = asking("metastore")
    shared = metastores["4.0.1"].database
    folder = tmp_path_factory.mktemp("kerberized")
    found = {
        "3.1.3": HiveMetastore("3.1.3", folder / "3", settings=new, core=core, jvm=jvm),
        "4.0.1": HiveMetastore(
            "4.0.1", folder / "4", database=shared, made=True, settings=new, core=core, jvm=jvm
        ),
        "2.3.10": HiveMetastore2(folder / "2", asking("hive.metastore"), core, jvm),
    }
    with ExitStack() as stack:
        for each in found.values():
            stack.callback(each.stop)
            each.start()
        for each in found.values():
            each.wait()
        yield found


@pytest.fixture(scope="module")
def kerberized(kerberized_by_version):
    return kerberized_by_version["4.0.1"]


@pytest.fixture(params=["2.3.10", "3.1.3", "4.0.1"])
def any_kerberized(kerberized_by_version, request):
    return kerberized_by_version[request.param]


@pytest.fixture(scope="module")
def private(metastores, tmp_path_factory):
    """A metastore over the database of 4.0.1 that speaks TLS; ``.authority`` is its certificate."""
    from tests.peers.hive_metastore import HiveMetastore

    folder = tmp_path_factory.mktemp("tls")
    store = folder / "store.p12"
    keytool = str(find_java().with_name("keytool"))
    common = ["-keystore", str(store), "-storepass", "secret", "-alias", "metastore"]
    subprocess.run(
        [keytool, "-genkeypair", *common, "-keyalg", "RSA", "-storetype", "PKCS12", "-dname", "CN=localhost", "-ext", "san=dns:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    authority = folder / "authority.pem"
    subprocess.run([keytool, "-exportcert", "-rfc", *common, "-file", str(authority)], check=True, capture_output=True)  # fmt: skip
    found = HiveMetastore(
        "4.0.1",
        folder,
        database=metastores["4.0.1"].database,
        made=True,
        settings={
            "metastore.use.SSL": "true",
            "metastore.keystore.path": str(store),
            "metastore.keystore.password": "secret",
            "metastore.keystore.type": "PKCS12",
        },
    )
    found.authority = authority
    try:
        yield started(lambda: found.start().wait())
    finally:
        found.stop()


def by_name(server):
    return f"thrift://localhost:{server.port}"


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
@pytest.mark.parametrize("protection", [None, "authentication", "privacy"])
def test_a_ticket_opens_a_kerberized_metastore(kerberized, alice, protection):
    wanted = {"hadoop.rpc.protection": protection} if protection else {}
    with client(by_name(kerberized), SASL | wanted) as found:
        assert "default" in found.databases()
        assert found._calls.pool.open_connections == 1


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_tables_are_made_and_written_with_a_ticket(any_kerberized, alice, tmp_path):
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    found = load_catalog("secure", uri=by_name(any_kerberized), warehouse=str(tmp_path), **SASL)
    found.create_namespace("secure")
    table = found.create_table("secure.t", rows.schema)
    for _ in range(2):
        table.append(rows)
    assert found.load_table("secure.t").scan().to_arrow().num_rows == 4
    found.drop_table("secure.t")
    found.drop_namespace("secure")
    found.close()


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_a_keytab_opens_a_kerberized_metastore(any_kerberized, kdc, monkeypatch):
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.configuration))
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere")
    keytab = {
        "hive.metastore.client.principal": f"alice@{REALM}",
        "hive.metastore.client.keytab": str(kdc.keytab("alice")),
    }
    with client(by_name(any_kerberized), SASL | keytab) as found:
        assert "default" in found.databases()


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_tickets_got_with_one_keytab_do_not_serve_another(kerberized, kdc, monkeypatch):
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.configuration))
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere")

    def databases(who):
        keytab = {
            "hive.metastore.client.principal": f"alice@{REALM}",
            "hive.metastore.client.keytab": str(kdc.keytab(who)),
        }
        with client(by_name(kerberized), SASL | keytab) as found:
            return found.databases()

    assert "default" in databases("alice")
    with pytest.raises(MetastoreError, match="no Kerberos credentials for alice"):
        databases("mallory")


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_a_delegation_token_opens_a_kerberized_metastore(
    any_kerberized, alice, tmp_path, monkeypatch
):
    with client(by_name(any_kerberized), SASL) as found:
        text = found._calls.read("get_delegation_token", "alice", "alice")
    token = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    file = tmp_path / "tokens"
    # a text's length is one byte while it is short
    file.write_bytes(b"HDTS\0\1" + b"\5alias" + token + b"\0")
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(file))
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere")
    with client(by_name(any_kerberized), SASL) as found:
        assert "default" in found.databases()
    damaged = file.read_bytes().replace(
        find_token(str(file), "HIVE_DELEGATION_TOKEN").password, bytes(20)
    )
    file.write_bytes(damaged)
    with (
        client(by_name(any_kerberized), SASL) as found,
        pytest.raises(UnreachableError, match="rejected the login"),
    ):
        found.databases()


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
@pytest.mark.parametrize(
    ("change", "says", "hint"),
    [
        ({"hive.metastore.kerberos.principal": f"hdfs/_HOST@{REALM}"}, f"hdfs/localhost@{REALM}: .*not found", "kerberos.principal"),
        ({"hive.metastore.kerberos.principal": f"impostor/_HOST@{REALM}"}, "rejected the login|closed the connection", None),
        ({"hive.metastore.client.principal": f"bob@{REALM}"}, f"no Kerberos credentials for bob@{REALM}", "kinit"),
        ({"hadoop.rpc.protection": "integrity"}, "it protects messages by auth, auth-conf", "hadoop.rpc.protection"),
    ],
    ids=["unknown-service", "other-service", "no-ticket", "protection"],
)  # fmt: skip
def test_what_kerberos_refuses_is_one_clear_line(kerberized, alice, change, says, hint):
    with (
        client(by_name(kerberized), SASL | change) as found,
        pytest.raises(MetastoreError, match=says) as caught,
    ):
        found.databases()
    assert "\n" not in caught.value.message
    assert hint is None or hint in caught.value.hint


@pytest.fixture
def relayed(kerberized, alice, tmp_path):
    """A catalog whose sealed messages a relay can send again."""
    sealed = {"hadoop.rpc.protection": "privacy", "clients": "1"}
    relay = SaslProxy(kerberized.port)
    uri = f"thrift://localhost:{relay.port}"
    with ExitStack() as stack:
        stack.callback(relay.close)
        found = load_catalog("relayed", uri=uri, warehouse=str(tmp_path), **SASL, **sealed)
        stack.callback(found.close)
        found.create_namespace("relayed")
        stack.callback(found.drop_namespace, "relayed")
        yield relay, found


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_sealed_calls_that_somebody_between_sends_again_are_not_done_again(relayed):
    relay, found = relayed
    rows = pa.table({"id": pa.array([1], pa.int64())})
    found.create_table("relayed.t", rows.schema)
    before = len(relay.sent)
    found.drop_table("relayed.t")
    calls = relay.sent[before:]
    found.create_table("relayed.t", rows.schema).append(rows)
    answers = [relay.repeat(each) for each in calls]
    assert found.load_table("relayed.t").scan().to_arrow() == rows
    assert answers == [None] * len(calls)
    found.drop_table("relayed.t")


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_a_sealed_answer_that_was_there_before_is_no_answer(relayed, caplog):
    relay, found = relayed
    caplog.set_level("INFO", "icecomb")
    before = found.list_namespaces()
    relay.instead = relay.answers[-1]
    assert found.list_namespaces() == before
    assert "repeated, left out or moved in transit" in caplog.text


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_a_dead_key_centre_is_named(kdc, tmp_path, monkeypatch, kerberized):
    elsewhere = tmp_path / "krb5.conf"
    port = kdc.configuration.read_text().split("127.0.0.1:")[1].split("\n")[0]
    elsewhere.write_text(kdc.configuration.read_text().replace(f":{port}", ":1"))
    monkeypatch.setenv("KRB5_CONFIG", str(elsewhere))
    keytab = {
        "hive.metastore.client.principal": f"impostor/localhost@{REALM}",
        "hive.metastore.client.keytab": str(kdc.keytab("impostor")),
    }
    with client(by_name(kerberized), SASL | keytab) as found, pytest.raises(MetastoreError, match="Cannot contact any KDC") as caught:  # fmt: skip
        found.databases()
    assert "krb5.conf" in caught.value.hint


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_the_secure_and_the_plain_do_not_mix_and_say_so(kerberized, private, metastore, alice):
    tls = {
        "hive.metastore.use.SSL": "true",
        "hive.metastore.truststore.path": str(private.authority),
    }
    mismatches = [
        (by_name(kerberized), {}, "does not talk plain Thrift", "hive.metastore.sasl.enabled"),
        (
            by_name(private),
            SASL | tls,
            "closed the connection|not SASL",
            "hive.metastore.sasl.enabled",
        ),
        (by_name(metastore), SASL, "belongs to", "its warehouse"),
        (by_name(private), {}, "does not talk plain Thrift", "hive.metastore.use.SSL"),
        (by_name(metastore), tls, "does not speak TLS", "hive.metastore.use.SSL"),
    ]
    for uri, properties, says, hint in mismatches:
        quick = {"hive.metastore.client.connect.timeout-s": "3"}
        with (
            client(uri, properties | quick) as found,
            pytest.raises(UnreachableError, match=says) as caught,
        ):
            found.databases()
        assert hint in caught.value.hint
        assert "\n" not in caught.value.message


def test_who_speaks_tls_to_a_plain_metastore_is_told_so(metastore):
    properties = {
        "hive.metastore.use.SSL": "true",
        "hive.metastore.client.connect.timeout-s": "3",
    }
    with (
        client(by_name(metastore), properties) as found,
        pytest.raises(UnreachableError, match="does not speak TLS") as caught,
    ):
        found.databases()
    assert "hive.metastore.use.SSL" in caught.value.hint
    assert "\n" not in caught.value.message


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_a_metastore_behind_tls_is_used_when_its_authority_is_trusted(private):
    tls = {"hive.metastore.use.SSL": "true"}
    trusted = tls | {"hive.metastore.truststore.path": str(private.authority)}
    with client(by_name(private), trusted) as found:
        for _ in range(3):
            assert "default" in found.databases()
        assert found._calls.pool.open_connections == 1
    with (
        client(by_name(private), tls) as found,
        pytest.raises(UnreachableError, match="self-signed") as caught,
    ):
        found.databases()
    assert "truststore.path" in caught.value.hint
    with (
        client(private.uri, trusted) as found,
        pytest.raises(UnreachableError, match=r"127\.0\.0\.1"),
    ):
        found.databases()


def test_a_trust_store_that_is_not_pem_is_refused_with_the_way_to_make_it_one(tmp_path):
    store = tmp_path / "store.jks"
    store.write_bytes(bytes.fromhex("feedfeed00000002"))
    with pytest.raises(ConfigurationError, match="no certificates in PEM") as caught:
        ConnectionSettings.of(
            {"hive.metastore.use.SSL": "true", "hive.metastore.truststore.path": str(store)}
        )
    assert "keytool" in caught.value.hint


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"hive.metastore.sasl.enabled": "true"}, "nothing says who the metastore is"),
        (SASL | {"hive.metastore.client.keytab": "/nowhere"}, "keytab /nowhere"),
        (SASL | {"hadoop.rpc.protection": "secret"}, "'secret'"),
        ({"hive.metastore.uri.selection": "BEST"}, "'BEST'"),
        ({"clients": "0"}, "clients"),
    ],
)
def test_settings_that_cannot_be_are_refused(properties, says, monkeypatch):
    monkeypatch.delenv("HADOOP_TOKEN_FILE_LOCATION", raising=False)
    with pytest.raises(ConfigurationError, match=says):
        ConnectionSettings.of(properties)


def test_settings_have_the_names_of_hive_2_and_of_hive_3():
    for prefix in ("hive.metastore", "metastore"):
        found = ConnectionSettings.of({
            f"{prefix}.client.socket.timeout": "1500ms",
            f"{prefix}.client.socket.lifetime": "1h",
            f"{prefix}.execute.setugi": "false",
            f"{prefix}.uri.selection": "random",
        })  # fmt: skip
        assert (found.timeout_s, found.lifetime_s, found.user, found.random) == (
            1.5,
            3600,
            None,
            True,
        )


@pytest.mark.parametrize(
    "data", [b"", b"HDTS\0", b"HDTS\0\1\5al", b"HDTS\1\0", b"HDTS\0\1\1a\x8f\x7f"]
)
def test_a_damaged_token_file_is_named(tmp_path, data):
    file = tmp_path / "tokens"
    file.write_bytes(data)
    with pytest.raises(ConfigurationError, match=str(file)):
        find_token(str(file), "HIVE_DELEGATION_TOKEN")


def test_a_digest_is_what_rfc_2831_says():
    # The servers' proof is checked by the real metastore above; here: that a false one is refused.
    digest = Digest(DelegationToken(b"who", b"secret"))
    assert digest.answer(None) == b""
    said = digest.answer(b'realm="default",nonce="abc",qop="auth",charset=utf-8,algorithm=md5-sess')
    assert b'username="d2hv"' in said
    assert b'digest-uri="null/default"' in said
    with pytest.raises(SaslError, match="password"):
        digest.answer(b"rspauth=00000000000000000000000000000000")
    assert not digest.complete
    with pytest.raises(SaslError, match="sealed"):
        Digest(DelegationToken(b"who", b"secret")).answer(b'nonce="abc",qop="auth-conf"')


@pytest.mark.parametrize("protection", ["auth-int", "auth-conf"])
def test_a_token_sends_nothing_where_messages_are_to_be_sealed(protection):
    """A server, or somebody in between, may offer less than it was told to."""
    with pytest.raises(SaslError, match=f"asks for {protection}.*nothing was sent"):
        Digest(DelegationToken(b"who", b"secret"), protection)


def _filed(identifier: bytes, password: bytes, service: bytes) -> bytes:
    """Return Hadoop's file of tokens (Credentials.java) with one of a metastore."""
    texts = (identifier, password, b"HIVE_DELEGATION_TOKEN", service)
    return b"HDTS\0\1" + b"\5alias" + b"".join(bytes([len(x)]) + x for x in texts) + b"\0"


@pytest.mark.parametrize("protection", ["integrity", "privacy", "authentication"])
def test_a_configured_protection_holds_for_logins_by_a_token(protection, tmp_path, monkeypatch):
    (tmp_path / "tokens").write_bytes(_filed(b"who", b"secret", b""))
    monkeypatch.setenv("HADOOP_TOKEN_FILE_LOCATION", str(tmp_path / "tokens"))
    sent = []

    def listen():
        plug, _ = server.accept()
        with plug:
            sent.append(plug.recv(1000))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=listen)
        thread.start()
        uri = f"thrift://127.0.0.1:{server.getsockname()[1]}"
        with (
            client(uri, {**SASL, "hadoop.rpc.protection": protection}) as found,
            pytest.raises(UnreachableError) as caught,
        ):
            found.databases()
        thread.join()
    if protection == "authentication":
        assert b"DIGEST-MD5" in sent[0]
    else:
        assert "nothing was sent" in caught.value.message
        assert sent == [b""]


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_whoever_may_act_for_others_is_served_as_the_one_he_acts_for(kerberized, alice):
    """``hadoop.proxyuser.alice.hosts`` and ``.groups`` of the metastore let alice act for bob."""
    acting = {**SASL, "hive.metastore.proxy-user": "bob"}
    with client(by_name(kerberized), SASL) as herself, client(by_name(kerberized), acting) as bob:
        # who may renew a token is said when it is asked for: who asks tells who he is
        token = herself._calls.read("get_delegation_token", "bob", "bob")
        with pytest.raises(MetastoreError, match="renew"):
            herself._calls.read("renew_delegation_token", token)
        assert bob._calls.read("renew_delegation_token", token) > 0
        assert "default" in bob.databases()


@pytest.mark.full("needs Kerberos, Hive 3 and Hive 4")
def test_a_metastore_that_lets_nobody_act_for_others_says_so(kerberized, kdc, monkeypatch):
    monkeypatch.setenv("KRB5_CONFIG", str(kdc.configuration))
    monkeypatch.setenv("KRB5CCNAME", kdc.tickets("mallory"))
    acting = {**SASL, "hive.metastore.proxy-user": "bob"}
    with client(by_name(kerberized), acting) as found, pytest.raises(MetastoreError) as caught:
        found.databases()
    assert "does not allow acting for bob" in str(caught.value)
    assert "--proxy-user" in str(caught.value.hint)
