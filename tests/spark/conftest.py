"""Sparks beside the shared one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.environments import made, pyspark_of, spark_venv
from tests.peers.s3a import s3a_jars
from tests.peers.scala_home import SCALA_2_13, of_scala_2_13
from tests.peers.spark_process import SparkProcess
from tests.peers.spark_worker import plain
from tests.rings import sampled

HERE = Path(__file__).resolve().parent
_JAVA = "asks Iceberg's runtime in a Spark of its own"


def pytest_collection_modifyitems(items):
    """Leave the tests that start another Spark than 4.3 to `full`."""
    for item in items:
        if HERE in item.path.parents:
            reason = _other_process(item)
            if reason is not None:
                item.add_marker(pytest.mark.full(reason))


def _other_process(item):
    info = getattr(item, "_fixtureinfo", None)
    if info is None:
        return None
    if "iceberg_java" in item.fixturenames:
        return _JAVA
    fixtures = [each[-1] for each in info.name2fixturedefs.values()]
    # `sql_on` and the like start only the Sparks that are asked for
    users = [each.argnames for each in fixtures if not each.argname.endswith("_on")]
    if any("other_spark" in names for names in [info.argnames, *users]):
        return "starts another Spark"
    callspec = getattr(item, "callspec", None)
    minor = "4.3" if callspec is None else callspec.params.get("minor", "4.3")
    return None if minor == "4.3" else f"starts Spark {minor}"


def pytest_generate_tests(metafunc):
    """What a test marked `sparks` runs on: `minor` is one of the mark's, or what the command line asks for."""
    mark = metafunc.definition.get_closest_marker("sparks")
    if mark is not None:
        asked = metafunc.config.getoption("--spark")
        metafunc.parametrize("minor", [asked] if asked else mark.args)


@pytest.fixture(scope="module")
def own_namespace(request, catalog):
    """The namespace is there that the module calls `NAMESPACE`."""
    catalog.create_namespace_if_not_exists((request.module.NAMESPACE,))


@pytest.fixture(scope="module")
def namespace(request, catalog):
    """The namespace that the module calls `NAMESPACE`, gone with its tables after the module."""
    name = request.module.NAMESPACE
    catalog.create_namespace(name)
    yield name
    for identifier in catalog.list_tables(name):
        catalog.drop_table(identifier)
    catalog.drop_namespace(name)


@pytest.fixture(scope="session")
def other_spark(metastore, tmp_path_factory, pytestconfig):
    """Sparks in environments of their own, by minor version, with our catalogs; each is started once."""
    from icecomb.spark import spark_conf
    from icecomb.spark.jar import bridge_jar, spark_home

    running = {}

    def start(minor):
        if minor not in running:
            ring = pytestconfig.getoption("--ring")
            assert ring == "full", f"a test of `{ring}` starts Spark {minor}: mark it `full`"
            venv = made(spark_venv(minor))
            package = pyspark_of(venv)
            other_scala = minor == SCALA_2_13
            home = spark_home(of_scala_2_13(package) if other_scala else package)
            assert minor in {home.minor, f"{home.minor}_{home.scala}"}
            place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
            jar = bridge_jar(home)
            conf = spark_conf("lake", **place, session_catalog=True, python=sys.executable, jar=jar)
            if minor == "3.5":
                conf["spark.jars"] = ",".join(map(str, [jar, *s3a_jars(home.path / "jars")]))
            log = tmp_path_factory.mktemp(f"spark-{minor}") / "log"
            running[minor] = SparkProcess(venv, conf, metastore, log, home.path)
        return running[minor]

    yield start
    for each in running.values():
        each.close()


@pytest.fixture(scope="session")
def sql_on(spark, other_spark):
    """Gives what answers a statement by a list of rows, on the Spark of a minor version."""

    def shared(text):
        return [list(row) for row in spark.sql(text).collect()]

    return lambda minor: shared if minor == "4.3" else other_spark(minor).sql


@pytest.fixture(scope="session")
def read_on(spark, other_spark):
    """Gives what reads a table by options, as `SparkProcess.read`, on the Spark of a minor version."""

    def shared(table, *, cache=False, **options):
        rows = spark.read.options(**options).table(table)
        return [list(row) for row in (rows.cache() if cache else rows).collect()]

    return lambda minor: shared if minor == "4.3" else other_spark(minor).read


@pytest.fixture(params=sampled(["4.3", "3.5"], keep=1))
def sql(request, sql_on):
    """Answers a statement, on the newest Spark and on the oldest."""
    return sql_on(request.param)


@pytest.fixture(params=["lake", pytest.param("ice", marks=pytest.mark.full(_JAVA))])
def ask(request):
    """Answers a query about tables of `{c}`: our Spark does, in `full` Iceberg's runtime, too."""
    if request.param == "ice":
        java = request.getfixturevalue("iceberg_java")
        return lambda query: java.sql(query.format(c="ice"))
    spark = request.getfixturevalue("spark")
    return lambda query: [
        [plain(value) for value in row] for row in spark.sql(query.format(c="lake")).collect()
    ]


@pytest.fixture(scope="module")
def peers(request, other_spark, iceberg_java):
    """What runs statements on Spark 4.1: for catalog `lake` ours, for `ice` Iceberg's runtime.

    The namespace is there that the module calls `NAMESPACE`.
    """
    found = {"lake": other_spark("4.1").sql, "ice": iceberg_java.sql}
    namespace = f"lake.{request.module.NAMESPACE}"
    found["lake"](f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
    yield found
    found["lake"](f"DROP NAMESPACE {namespace}")


@pytest.fixture
def only_lake(spark):
    """No other catalog of ours is configured, whatever tests before this one left in the session."""
    others = {
        key: value
        for key, value in spark.conf.getAll.items()
        if key.startswith("spark.sql.catalog.") and not key.startswith("spark.sql.catalog.lake")
    }
    for key in others:
        spark.conf.unset(key)
    yield
    for key, value in others.items():
        spark.conf.set(key, value)
