"""Real services, each started once per test run on free ports, shared, and always stopped."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import cases, lanes, parts, rings
from tests.peers import class_archive
from tests.peers.second_try import started
from tests.peers.spark_process import SHORT_LIVED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icecomb.catalog.hive.catalog import HiveCatalog
    from icecomb.catalog.metastore import RunningMetastore
    from tests.peers.azurite import Azurite
    from tests.peers.google_store import GoogleStore
    from tests.peers.hdfs import Hdfs
    from tests.peers.hive_metastore import HiveMetastore
    from tests.peers.iceberg_java import IcebergJava
    from tests.peers.iceberg_library import IcebergLibrary
    from tests.peers.s3 import S3
    from tests.peers.versity_gateway import VersityGateway

ROOT = Path(__file__).resolve().parent.parent

# What this machine is configured for is no part of a test, and no proxy stands before 127.0.0.1.
_CONFIGURED = (
    "AWS_",
    "AZURE_",
    "BOTO_",
    "GOOGLE_",
    "HADOOP_",
    "HDFS_",
    "HIVE_",
    "ICECOMB_",
    "KRB5",
    "PYSPARK_",
    "SPARK_",
)
for variable in list(os.environ):
    if variable.startswith(_CONFIGURED) or variable.lower().endswith("_proxy"):
        del os.environ[variable]
os.environ["ICECOMB_HOME"] = "/nonexistent"
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
# PySpark and Iceberg Java answer in the machine's zone: answers are compared in one.
os.environ["TZ"] = "UTC"
time.tzset()
# A test's Spark is over before the second compiler and parallel collections have paid for themselves.
os.environ["SPARK_SUBMIT_OPTS"] = class_archive.options()
os.environ["SPARK_DAEMON_JAVA_OPTS"] = os.environ["SPARK_LAUNCHER_OPTS"] = SHORT_LIVED

_FIRST_STATEMENTS = (
    "CREATE TABLE lake.default.first (id BIGINT) USING iceberg",
    "INSERT INTO lake.default.first VALUES (1)",
    "SELECT * FROM lake.default.first",
    "DROP TABLE lake.default.first PURGE",
)

# A fixture that starts a server, or a peer in an environment of its own, is named here: whoever needs
# it gets the mark. A test that starts one by itself is marked by hand.
SERVICES = frozenset(
    {
        *(
            "metastore",
            "metastores",
            "hdfs",
            "secured_hdfs",
            "spark",
            "other_spark",
            "iceberg_java",
            "iceberg_library",
        ),
        *("kdc", "cluster", "paimon_java", "pypaimon"),
        *("google_store", "azurite", "other_s3"),
    }
)


def pytest_addoption(parser: pytest.Parser) -> None:
    cases.add_options(parser)
    rings.add_options(parser)
    parts.add_options(parser)
    lanes.add_options(parser)
    parser.addoption("--spark", metavar="VERSION", help="run the files of spark/sql on this Spark")
    parser.addoption(
        "--mixed-load", metavar="SECONDS", default="60", help="how long all engines write at once"
    )
    parser.addoption(
        "--mixed-load-compaction",
        choices=("icecomb", "iceberg_java"),
        default="icecomb",
        help="whose rewrite_data_files runs beside them",
    )
    parser.addoption(
        "--hive-rounds", default="30", help="how many statements of Hive are run beside migrations"
    )
    parser.addoption(
        "--recipe-copies", type=int, default=3, help="how often each six tables are moved"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    cases.configure(config)
    lanes.configure(config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cases.generate(metafunc)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        # what is collected stays to the end: looking through it again and again takes a tenth of the time
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    for item in items:
        if SERVICES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.jvm)
        if cases.is_random(item):
            item.add_marker(pytest.mark.random)
    yield
    config.stash[rings.ALL] = list(items)
    parts.select(config, items)
    rings.select(config, items)
    cases.shuffle(config, items)
    lanes.arrange(config, items)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    return lanes.run(session)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    cases.check_time(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from cases.count(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from lanes.measure(item))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    found = cases.summary(config)
    if found is not None:
        terminalreporter.write_line(found)


def pytest_unconfigure(config: pytest.Config) -> None:
    lanes.write(config)


@pytest.fixture(autouse=True)
def registered_file_systems() -> Iterator[None]:
    """What a test registers is over with it: where there is more, no other process does any work."""
    from icecomb.format.storage.file_io import _FILE_SYSTEMS

    before = dict(_FILE_SYSTEMS)
    yield
    _FILE_SYSTEMS.clear()
    _FILE_SYSTEMS.update(before)


@pytest.fixture(scope="session")
def first_seed(request: pytest.FixtureRequest) -> int:
    """What a random test adds to its seeds: 0 for the pinned cases."""
    return cases.first_seed(request.config)


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMetastore]:
    """A real Hive metastore 2.3.10 over a warehouse folder of this run: ``.uri``, ``.warehouse``."""
    from icecomb.catalog import metastore

    found = started(lambda: metastore.start(tmp_path_factory.mktemp("warehouse")))
    yield found
    metastore.stop(found.warehouse)


@pytest.fixture(scope="session")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A real HDFS with one name node: ``.uri``, ``.client_settings``; everybody may write to ``/warehouse``."""
    from tests.peers.hdfs import Hdfs

    cluster = started(lambda: Hdfs(tmp_path_factory.mktemp("hdfs")).start())
    yield cluster
    cluster.stop()


@pytest.fixture(scope="session")
def secured_hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A real HDFS that asks Kerberos who its users are: ``.kdc`` knows ``etl`` and ``alice``."""
    from tests.peers.hdfs import Hdfs
    from tests.peers.kdc import Kdc

    principals = ("hdfs/localhost", "HTTP/localhost", "hive/localhost", "etl", "alice")
    kdc = started(lambda: Kdc(tmp_path_factory.mktemp("kdc"), *principals).start())
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KRB5_CONFIG", str(kdc.configuration))
            cluster = started(lambda: Hdfs(tmp_path_factory.mktemp("secured"), kdc=kdc).start())
        yield cluster
        cluster.stop()
    finally:
        kdc.stop()


@pytest.fixture(scope="session")
def s3() -> Iterator[S3]:
    """An S3: ``.settings`` for catalogs, ``.bucket()`` makes one."""
    from tests.peers.s3 import S3

    server = started(lambda: S3().start())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def other_s3() -> Iterator[VersityGateway]:
    """Another S3: ``.settings``, ``.place()`` is the location of a new bucket."""
    from tests.peers.versity_gateway import VersityGateway

    server = started(lambda: VersityGateway().start())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def google_store() -> Iterator[GoogleStore]:
    """A Google Cloud Storage: ``.settings``, ``.place()`` is the location of a new bucket."""
    from tests.peers.google_store import GoogleStore

    server = started(lambda: GoogleStore().start())
    yield server
    server.stop()


@pytest.fixture(scope="session")
def azurite() -> Iterator[Azurite]:
    """An Azure Blob Storage: ``.settings``, ``.place()`` is the location of a new container."""
    from tests.peers.azurite import Azurite

    server = started(lambda: Azurite().start())
    yield server
    server.stop()


@pytest.fixture
def icecomb(metastore: RunningMetastore, capfd: pytest.CaptureFixture[str]) -> Any:
    """Runs `icecomb ...` on the shared metastore, or on another: exit code, stdout, stderr."""
    from icecomb.catalog import cli

    def run(*arguments: str, form: str = "text", uri: str = metastore.uri) -> tuple[int, str, str]:
        capfd.readouterr()
        place = ["--uri", uri, "--warehouse", str(metastore.warehouse), "--output", form]
        code = cli.main([*place, *arguments])
        return code, *capfd.readouterr()

    return run


@pytest.fixture(scope="session")
def metastores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, HiveMetastore]]:
    """Real Hive metastores by version: 3.1.3 on Derby, 4.0.1 on Postgres; both start at once."""
    from tests.peers.hive_metastore import HiveMetastore
    from tests.peers.postgres import Postgres

    with ExitStack() as stack:
        database = started(lambda: Postgres().start())
        stack.callback(database.stop)

        def start(version: str) -> HiveMetastore:
            folder = tmp_path_factory.mktemp(f"hive-{version}")
            url = None if version == "3.1.3" else database.create_database(folder.name)
            found = HiveMetastore(version, folder, database=url).start().wait()
            stack.callback(found.stop)
            return found

        versions = ("3.1.3", "4.0.1")
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda version: started(lambda: start(version)), versions))
        yield dict(zip(versions, found, strict=True))


@pytest.fixture(scope="session")
def hive_catalogs(
    metastore: RunningMetastore, metastores: dict[str, HiveMetastore]
) -> Iterator[dict[str, HiveCatalog]]:
    """Our catalogs on every version of the metastore."""
    from icecomb.catalog.hive.catalog import HiveCatalog

    servers: dict[str, Any] = {"2.3.10": metastore, **metastores}
    found = {
        version: HiveCatalog("lake", {"uri": each.uri, "warehouse": str(each.warehouse)})
        for version, each in servers.items()
    }
    yield found
    for each in found.values():
        each.close()


@pytest.fixture(scope="session")
def catalog(metastore: RunningMetastore) -> Iterator[HiveCatalog]:
    """Our catalog on the shared metastore."""
    from icecomb.catalog.hive.catalog import HiveCatalog

    catalog = HiveCatalog("lake", {"uri": metastore.uri, "warehouse": str(metastore.warehouse)})
    yield catalog
    catalog.close()


@pytest.fixture(scope="session")
def spark(metastore: RunningMetastore) -> Iterator[SparkSession]:
    """Spark 4.3 with our catalog ``lake``, and S3A; its own Hive support is on the same metastore."""
    import icecomb.spark
    from tests.peers.ivy import pyspark_jars
    from tests.peers.s3a import s3a_jars
    from tests.peers.spark_process import SMALL

    class_archive.make()
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    jars = {"spark.jars": ",".join(map(str, s3a_jars(pyspark_jars())))}
    session = started(lambda: icecomb.spark.session("lake", **place, **jars, hive=True, **SMALL))
    # The first statements start the planner and load most classes: that is no test's time.
    for statement in _FIRST_STATEMENTS:
        session.sql(statement).collect()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def iceberg_java(
    metastore: RunningMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergJava]:
    """The reference implementation, for what it reads of ours and we of its."""
    from tests.peers.iceberg_java import IcebergJava

    folder = tmp_path_factory.mktemp("iceberg-java")
    peer = started(lambda: IcebergJava(metastore, folder / "log"))
    yield peer
    peer.close()


@pytest.fixture(scope="session")
def iceberg_library(
    metastore: RunningMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IcebergLibrary]:
    """The reference implementation as a library on a plain JVM: what Spark would only pass on."""
    from tests.peers.iceberg_library import IcebergLibrary

    folder = tmp_path_factory.mktemp("iceberg-library")
    peer = started(lambda: IcebergLibrary(metastore, folder / "log"))
    yield peer
    peer.close()


@pytest.fixture(scope="session")
def pyiceberg(metastore: RunningMetastore) -> Any:
    """PyIceberg's Hive catalog on the shared metastore."""
    from pyiceberg.catalog import load_catalog

    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    return load_catalog("peer", type="hive", **place, ugi=f"tests:{metastore.secret}")
