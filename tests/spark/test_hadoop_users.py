"""Whose files and tables they are where a server acts for its users, and which tokens it shows."""

from __future__ import annotations

import getpass
import json
import uuid

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.storage.delegation_token import DelegationToken, find_token, find_tokens
from icecomb.spark import spark_conf
from icecomb.spark.planner.protocol.catalogs import Environment, Identity, OpenCatalog
from icecomb.spark.planner.table.catalogs import Catalogs
from tests.peers import spark_users
from tests.peers.spark_process import SMALL

OF_A_SERVER = pytest.mark.full("a Spark of its own acts for its users")
NAME = f"users_{uuid.uuid4().hex[:8]}"


def _owners(hdfs, path):
    """Who owns the files below a folder."""
    found = set()
    answer = json.loads(hdfs.request("GET", f"{path}?op=LISTSTATUS"))
    for entry in answer["FileStatuses"]["FileStatus"]:
        if entry["type"] == "FILE":
            found.add(entry["owner"])
        else:
            found |= _owners(hdfs, f"{path}/{entry['pathSuffix']}")
    return found


def _step(*statements, user=None, real=None, tokens=()):
    """Statements in the name of a user; None is who started Spark."""
    tokens = [token.url_text for token in tokens]
    return {"user": user, "real": real, "tokens": tokens, "sql": list(statements)}


def _namespace(which):
    return f"{NAME}_{which}"


def _made(which, user):
    table = f"lake.{_namespace(which)}.{user}"
    return (
        f"CREATE TABLE {table} (id BIGINT)",
        f"INSERT INTO {table} SELECT id FROM range(0, 4, 1, 2)",
        f"DELETE FROM {table} WHERE id = 3",
        f"SELECT sum(id) FROM {table}",
    )


@pytest.fixture(scope="module")
def answers(metastore, hdfs, catalog):
    """What a server answers its users, by step."""
    warehouse = f"{hdfs.uri}/warehouse/{NAME}"
    hdfs.request("PUT", f"/warehouse/{NAME}?op=MKDIRS&permission=1777")
    for each in ("shared", "own"):
        hdfs.request("PUT", f"/warehouse/{NAME}/{_namespace(each)}.db?op=MKDIRS&permission=1777")
    conf = {**SMALL, **spark_conf("lake", uri=metastore.uri, warehouse=warehouse)}
    conf |= {f"spark.hadoop.{key}": value for key, value in hdfs.client_settings.items()}
    own = f"lake.{_namespace('own')}"
    elsewhere = _token("HDFS_DELEGATION_TOKEN", "ha-hdfs:elsewhere")
    here = _token("HDFS_DELEGATION_TOKEN", f"127.0.0.1:{hdfs.rpc['nn1']}")
    steps = {
        "namespaces": _step(
            *(f"CREATE NAMESPACE lake.{_namespace(each)}" for each in ("shared", "own"))
        ),
        "alice": _step(*_made("shared", "alice"), user="alice"),
        "bob": _step(*_made("shared", "bob"), user="bob"),
        "the server": _step(*_made("shared", "server")),
        "carol by hdfs": _step(*_made("shared", "carol"), user="carol", real="hdfs"),
        "dave by eve": _step(*_made("shared", "dave"), user="dave", real="eve"),
        "alice's own": _step(
            f"CREATE NAMESPACE {own}_alice LOCATION '{warehouse}/own_alice'",
            f"CREATE TABLE {own}_alice.t USING iceberg AS SELECT 1 AS id",
            user="alice",
        ),
        "token elsewhere": _step(
            f"CREATE TABLE {own}.before (id BIGINT)", user="frank", tokens=[elsewhere]
        ),
        "token here": _step(f"CREATE TABLE {own}.after (id BIGINT)", user="frank", tokens=[here]),
    }
    yield dict(zip(steps, spark_users.answers(conf, steps.values()), strict=True))
    for name in (_namespace("shared"), _namespace("own"), f"{_namespace('own')}_alice"):
        for table in catalog.list_tables(name):
            catalog.drop_table(table)
        catalog.drop_namespace(name)


@OF_A_SERVER
@pytest.mark.parametrize(
    ("step", "table", "owner"),
    [
        ("alice", "alice", "alice"),
        ("bob", "bob", "bob"),
        ("the server", "server", getpass.getuser()),
        ("carol by hdfs", "carol", "carol"),
    ],
)
def test_users_of_one_server_have_files_and_tables_of_their_own(
    answers, step, table, owner, hdfs, catalog
):
    assert answers[step] == [[3]]
    folder = f"/warehouse/{NAME}/{_namespace('shared')}.db/{table}"
    assert _owners(hdfs, folder) == {owner}
    assert catalog.client.table(_namespace("shared"), table).owner == owner


@OF_A_SERVER
def test_a_server_acts_for_others_only_where_the_cluster_lets_it(answers):
    """This cluster lets its superuser alone."""
    refused = answers["dave by eve"]["error"]
    assert "eve is not allowed to impersonate dave" in refused


@OF_A_SERVER
def test_a_namespace_is_its_users_too(answers, hdfs, catalog):
    assert answers["alice's own"] == []
    assert catalog.client.database(f"{_namespace('own')}_alice").owner == "alice"
    assert _owners(hdfs, f"/warehouse/{NAME}/own_alice") == {"alice"}


@OF_A_SERVER
def test_a_token_that_a_user_gets_is_shown_from_the_next_statement_on(answers, hdfs):
    """This cluster knows no security: whoever comes with a token is nobody there."""
    folder = f"/warehouse/{NAME}/{_namespace('own')}.db"
    assert answers["token elsewhere"] == answers["token here"] == []
    assert _owners(hdfs, f"{folder}/before") == {"frank"}
    assert _owners(hdfs, f"{folder}/after") == {"nobody"}


def _token(kind, service, secret=b"secret"):
    """A token as Hadoop's `Token` writes itself."""
    parts = (b"who", secret, kind.encode(), service.encode())
    data = b"".join(bytes([len(part)]) + part for part in parts)
    return DelegationToken(b"who", secret, service, data, kind)


def _open(catalogs, place, identity):
    environment = Environment(None, "a1", "4.3.0", {})
    return catalogs.open_catalog(OpenCatalog("lake", place, environment, identity)).catalog


def test_new_tokens_of_a_user_take_the_place_of_the_old_ones_in_catalogs_that_are_open(tmp_path):
    catalogs = Catalogs()
    place = {"type": "hadoop", "warehouse": str(tmp_path)}
    handles = []
    for secret in (b"first", b"renewed"):
        tokens = [_token("HDFS_DELEGATION_TOKEN", "ha-hdfs:ns1", secret), _token("OTHER", "")]
        identity = Identity(
            "me", None, login=True, secured=True, tokens=tuple(each.url_text for each in tokens)
        )
        handles.append(_open(catalogs, place, identity))
        source = catalogs[handles[0]].properties["hadoop.token.files"]
        assert list(find_tokens(source)) == tokens
        assert find_token(source, "HDFS_DELEGATION_TOKEN").password == secret
    assert handles[0] == handles[1]
    another = _open(catalogs, place, Identity("you", None, login=True, secured=True, tokens=()))
    assert another != handles[0]
    assert find_tokens(catalogs[another].properties["hadoop.token.files"]) == ()


def test_a_user_whom_nothing_proves_to_a_secured_cluster_is_refused(tmp_path):
    place = {"type": "hadoop", "warehouse": str(tmp_path)}
    stranger = Identity("stranger", None, login=False, secured=True, tokens=())
    with pytest.raises(ConfigurationError, match=r"nothing proves .* that stranger asks") as caught:
        _open(Catalogs(), place, stranger)
    assert "--proxy-user" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("identity", "known"),
    [
        (
            Identity("me", None, login=True, secured=False, tokens=()),
            {"hdfs.user": "me", "ugi": "me"},
        ),
        (
            Identity("you", "server", login=False, secured=False, tokens=()),
            {"hdfs.user": "server", "hdfs.proxy-user": "you", "ugi": "you"},
        ),
        (
            Identity("you", "server", login=False, secured=True, tokens=()),
            {"hdfs.proxy-user": "you", "hive.metastore.proxy-user": "you", "ugi": "you"},
        ),
    ],
)
def test_services_are_told_whose_statement_it_is(identity, known, tmp_path):
    catalogs = Catalogs()
    place = {"type": "hadoop", "warehouse": str(tmp_path)}
    found = catalogs[_open(catalogs, place, identity)].properties
    assert known.items() <= found.items()
    assert ("hdfs.user" in found) == ("hdfs.user" in known)
    configured = _open(catalogs, {**place, "ugi": "etl"}, identity)
    assert catalogs[configured].properties["ugi"] == "etl"


def _open_with_keytab(identity, **options):
    catalogs = Catalogs()
    environment = Environment(None, "a1", "4.3.0", {}, "etl@LAB", "/keys/etl")
    place = {"type": "hadoop", "warehouse": "/nowhere", **options}
    found = catalogs.open_catalog(OpenCatalog("lake", place, environment, identity)).catalog
    return catalogs[found].properties


@pytest.mark.parametrize(
    ("tokens", "hdfs", "metastore"),
    [
        ((), "/keys/etl", "/keys/etl"),
        (("HDFS_DELEGATION_TOKEN",), None, "/keys/etl"),
        (("WEBHDFS delegation", "HIVE_DELEGATION_TOKEN"), None, None),
    ],
)
def test_the_keytab_of_spark_opens_what_no_token_is_for(tokens, hdfs, metastore):
    shown = tuple(_token(kind, "").url_text for kind in tokens)
    found = _open_with_keytab(Identity("etl", None, login=True, secured=True, tokens=shown))
    assert found.get("hdfs.kerberos.keytab") == hdfs
    assert found.get("hdfs.kerberos.principal") == (hdfs and "etl@LAB")
    assert found.get("hive.metastore.client.keytab") == metastore
    assert found.get("hive.metastore.client.principal") == (metastore and "etl@LAB")


def test_the_keytab_of_spark_is_for_those_it_acts_for_and_not_for_strangers():
    served = _open_with_keytab(Identity("you", "etl", login=False, secured=True, tokens=()))
    assert served["hdfs.kerberos.keytab"] == "/keys/etl"
    assert served["hdfs.proxy-user"] == served["hive.metastore.proxy-user"] == "you"
    tokens = (_token("OTHER", "").url_text,)
    stranger = _open_with_keytab(Identity("you", None, login=False, secured=True, tokens=tokens))
    assert "hdfs.kerberos.keytab" not in stranger


def test_a_key_that_a_catalog_has_of_its_own_is_not_mixed_with_that_of_spark():
    own = {"hdfs.kerberos.principal": "own@LAB", "hadoop.token.files": "/nowhere"}
    login = Identity("etl", None, login=True, secured=True, tokens=())
    assert "hdfs.kerberos.keytab" not in _open_with_keytab(login, **own)
    del own["hadoop.token.files"]
    found = _open_with_keytab(login, **own)
    assert found["hdfs.kerberos.principal"] == "own@LAB"
    assert "hdfs.kerberos.keytab" not in found
    assert found["hive.metastore.client.keytab"] == "/keys/etl"
