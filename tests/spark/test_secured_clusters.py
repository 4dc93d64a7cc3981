"""A cluster that asks Kerberos who its users are: what Spark's own settings are enough for, and what is refused."""

from __future__ import annotations

import json
import sys

import pytest

from icecomb.catalog import load_catalog
from icecomb.spark import spark_conf
from icecomb.spark.jar import bridge_jar, spark_home
from tests.environments import made, pyspark_of, spark_venv
from tests.peers import spark_users
from tests.peers.hdfs import write_site
from tests.peers.hive_metastore import HiveMetastore2
from tests.peers.spark_process import SMALL

pytestmark = pytest.mark.full("an HDFS with Kerberos, and a Spark for each user")

NOWHERE = {"KRB5CCNAME": "FILE:/nowhere"}


@pytest.fixture(scope="module")
def cluster(secured_hdfs, tmp_path_factory):
    """The cluster; `.site` has the files that the hosts of a secured cluster have."""
    secured_hdfs.site = tmp_path_factory.mktemp("site")
    write_site(
        secured_hdfs.site / "core-site.xml",
        {
            **secured_hdfs.client_settings,
            "hadoop.security.authentication": "kerberos",
            "dfs.namenode.kerberos.principal": "hdfs/localhost@TEST.LAB",
        },
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(secured_hdfs.kdc.configuration))
        yield secured_hdfs


def keytab(cluster, principal):
    """Spark's own settings for it."""
    name = principal.split("/")[0]
    return {
        "spark.kerberos.principal": f"{principal}@TEST.LAB",
        "spark.kerberos.keytab": str(cluster.kdc.keytab(name)),
    }


def answers(cluster, warehouse, steps, ticket, *, minor="4.3", **conf):
    """What Spark says to steps on a file-system catalog of this cluster."""
    cluster.request("PUT", f"/warehouse/{warehouse}?op=MKDIRS&permission=1777")
    package = pyspark_of(made(spark_venv(minor)))
    home = spark_home(package)
    asked = f"-Djava.security.krb5.conf={cluster.kdc.configuration}"
    place = f"{cluster.uri}/warehouse/{warehouse}"
    conf = {
        **SMALL,
        **spark_conf("lake", warehouse=place, python=sys.executable, jar=bridge_jar(home)),
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.driver.extraJavaOptions": asked,
        **conf,
    }
    environment = {"HADOOP_CONF_DIR": str(cluster.site), "SPARK_HOME": str(home.path), **ticket}
    python = str(spark_venv(minor) / "bin" / "python")
    return spark_users.answers(conf, steps, environment, python)


def step(*statements, user=None):
    """Statements in the name of who started Spark, or of a user whom it acts for."""
    real = None if user is None else ""
    return {"user": user, "real": real, "tokens": [], "sql": list(statements)}


def owners(cluster, path):
    """Who owns the files below a folder."""
    found = set()
    for entry in json.loads(cluster.request("GET", f"{path}?op=LISTSTATUS"))["FileStatuses"][
        "FileStatus"
    ]:
        below = f"{path}/{entry['pathSuffix']}"
        found |= {entry["owner"]} if entry["type"] == "FILE" else owners(cluster, below)
    return found


CHANGES = (
    "CREATE NAMESPACE lake.db",
    "CREATE TABLE lake.db.t (id BIGINT, part STRING) PARTITIONED BY (part)",
    "INSERT INTO lake.db.t SELECT id, 'p' || id % 2 FROM range(0, 10, 1, 2)",
    "UPDATE lake.db.t SET part = 'x' WHERE id = 3",
    "DELETE FROM lake.db.t WHERE id = 4",
    "SELECT count(*), sum(id), max(part) FROM lake.db.t",
)


@pytest.mark.parametrize("way", ["keytab", "ticket of which the planner has the tokens alone"])
def test_sparks_own_settings_are_enough_to_make_change_and_read_a_table(cluster, way, tmp_path):
    if way == "keytab":
        who, ticket, conf = "etl", NOWHERE, keytab(cluster, "etl")
    else:
        python = tmp_path / "python-without-ticket"
        python.write_text(f'#!/bin/sh\nKRB5CCNAME=FILE:/nowhere exec {sys.executable} "$@"\n')
        python.chmod(0o755)
        who, ticket = "alice", {"KRB5CCNAME": cluster.kdc.tickets("alice")}
        conf = {"spark.sql.catalog.lake.python": str(python)}
    [found] = answers(cluster, who, [step(*CHANGES)], ticket, **conf)
    assert found == [[9, 41, "x"]]
    assert owners(cluster, f"/warehouse/{who}/db/t") == {who}
    files = load_catalog(
        "files",
        type="hadoop",
        warehouse=f"{cluster.uri}/warehouse/{who}",
        **cluster.client_settings,
        **{"hadoop.security.authentication": "kerberos"},
        **{"hdfs.kerberos.principal": f"{who}@TEST.LAB"},
        **{"hdfs.kerberos.keytab": str(cluster.kdc.keytab(who))},
    )
    rows = files.load_table("db.t").scan().to_arrow()
    assert sorted(rows["id"].to_pylist()) == [0, 1, 2, 3, 5, 6, 7, 8, 9]


@pytest.fixture
def metastore_with_kerberos(cluster, tmp_path):
    found = HiveMetastore2(
        tmp_path / "metastore",
        {
            "hive.metastore.sasl.enabled": "true",
            "hive.metastore.kerberos.keytab.file": str(cluster.kdc.keytab("hive")),
            "hive.metastore.kerberos.principal": "hive/localhost@TEST.LAB",
        },
        {
            "hadoop.security.authentication": "kerberos",
            "hadoop.security.auth_to_local": "RULE:[2:$1](.*)\nDEFAULT",
        },
        [f"-Djava.security.krb5.conf={cluster.kdc.configuration}"],
    )
    (tmp_path / "metastore").mkdir()
    found.start().wait()
    yield found
    found.stop()


def test_the_keytab_of_spark_opens_a_metastore(cluster, metastore_with_kerberos, tmp_path):
    """In client mode Spark itself asks no metastore for a token."""
    settings = {
        "hive.metastore.uris": metastore_with_kerberos.uri.replace("127.0.0.1", "localhost"),
        "hive.metastore.sasl.enabled": "true",
        "hive.metastore.kerberos.principal": "hive/_HOST@TEST.LAB",
    }
    [found] = answers(
        cluster,
        "of-metastore",
        [step(*CHANGES)],
        NOWHERE,
        **keytab(cluster, "etl"),
        **{f"spark.hadoop.{key}": value for key, value in settings.items()},
        **{"spark.sql.catalog.lake.type": "hive"},
        **{"spark.sql.catalog.lake.warehouse": (tmp_path / "warehouse").as_uri()},
    )
    assert found == [[9, 41, "x"]], found


def test_without_a_ticket_a_statement_says_how_to_get_one(cluster):
    namespaces = step("SHOW NAMESPACES IN lake")
    for found in answers(cluster, "nobody", [namespaces, namespaces], NOWHERE):
        assert "get a ticket with kinit" in found["error"]
        assert "hdfs.kerberos.keytab" in found["error"]


@pytest.fixture(scope="module", params=["4.3", "3.5"])
def acted_for(cluster, request):
    """What a server answers alice and bob, whom it acts for by its keytab; alice's folder is closed to others."""
    warehouse = f"served-{request.param}"
    folder = f"/warehouse/{warehouse}/alice"
    cluster.request("PUT", f"/warehouse/{warehouse}?op=MKDIRS&permission=1777")
    cluster.request("PUT", f"{folder}?op=MKDIRS&permission=700")
    cluster.request("PUT", f"{folder}?op=SETOWNER&owner=alice")
    table = "lake.alice.t"
    rows, snapshots = f"SELECT count(*) FROM {table}", f"SELECT count(*) FROM {table}.snapshots"
    lent = {
        "rows": rows,
        "snapshots": snapshots,
        "viewed_rows": rows,
        "viewed_snapshots": snapshots,
    }
    steps = {
        "alice makes": step(f"CREATE TABLE {table} (id BIGINT)", user="alice"),
        "alice writes": step(f"INSERT INTO {table} VALUES (1)", user="alice"),
        "the server writes": step(f"INSERT INTO {table} VALUES (1), (2)"),
        "alice lends": step(
            *({"sql": sql, "keep": name} for name, sql in lent.items()),
            *({"view": name} for name in lent if name.startswith("viewed")),
            user="alice",
        ),
        "bob rows": step(rows, user="bob"),
        "bob snapshots": step(snapshots, user="bob"),
    }
    for who in ("bob", "alice"):
        for name in lent:
            asked = f"SELECT * FROM global_temp.{name}" if "_" in name else {"collect": name}
            steps[f"{who} lent {name}"] = step(asked, user=who)
    server = keytab(cluster, "hdfs/localhost")
    found = answers(cluster, warehouse, steps.values(), NOWHERE, minor=request.param, **server)
    return dict(zip(steps, found, strict=True)), f"{folder}/t"


def test_a_server_with_a_keytab_acts_for_its_users(acted_for, cluster):
    found, folder = acted_for
    assert found["alice makes"] == []
    assert "cannot read or write files as alice" in found["alice writes"]["error"]
    assert "spark-submit --proxy-user alice" in found["alice writes"]["error"]
    assert found["the server writes"] == []
    assert owners(cluster, f"{folder}/metadata") == {"alice", "hdfs"}


def test_a_user_is_not_answered_with_the_rights_of_another(acted_for):
    """Neither by name, nor by what the other has opened: his rights count, or it is refused."""
    found, _ = acted_for
    refused = {step: answer for step, answer in found.items() if step.startswith("bob")}
    assert len(refused) == 6
    for answer in refused.values():
        assert isinstance(answer, dict), refused
        denied = "user=bob" in answer["error"] and "AccessControlException" in answer["error"]
        assert denied or "as alice by hdfs opened it" in answer["error"]
    # whoever lent a view may go on; a DataFrame keeps the error of its first plan
    assert found["alice lent viewed_rows"] == [[2]]
    assert found["alice lent viewed_snapshots"] == [[1]]
