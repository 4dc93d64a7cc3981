"""The main job on HDFS: a Hive table there is taken over, written by Spark, Iceberg Java and us, and given back."""

from __future__ import annotations

import getpass
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.catalog import load_catalog, migrate, open_table
from icecomb.catalog.hadoop.process_lock import WAITING
from icecomb.catalog.hive.catalog import HiveCatalog
from icecomb.format.holding import Holding
from icecomb.spark.conf import CATALOG_CLASS


@pytest.fixture(scope="module")
def lake(metastore: Any, hdfs: Any) -> Iterator[HiveCatalog]:
    """Our catalog on the shared metastore, its warehouse on HDFS; we are who Spark is."""
    settings = {**hdfs.client_settings, "hdfs.user": getpass.getuser()}
    warehouse = f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
    catalog = HiveCatalog("on_hdfs", {"uri": metastore.uri, "warehouse": warehouse, **settings})
    yield catalog
    catalog.close()


@pytest.fixture(scope="module")
def spark_on_hdfs(spark: Any, metastore: Any, hdfs: Any) -> Any:
    """The shared Spark with one more catalog of ours, ``on_hdfs``."""
    prefix = "spark.sql.catalog.on_hdfs"
    spark.conf.set(prefix, CATALOG_CLASS)
    spark.conf.set(f"{prefix}.python", sys.executable)
    for key, value in {
        "uri": metastore.uri,
        "warehouse": f"{hdfs.uri}/warehouse",
        **hdfs.client_settings,
    }.items():
        spark.conf.set(f"{prefix}.{key}", value)
    return spark


@pytest.fixture(scope="module")
def namespace(lake: HiveCatalog) -> Iterator[str]:
    """A namespace whose folder is on HDFS."""
    name = "hdfsdb"
    lake.create_namespace(name)
    yield name
    lake.drop_namespace(name)


def ids(rows: list[Any]) -> list[int]:
    return sorted(row[0] for row in rows)


@pytest.mark.full("Iceberg Java in a second Spark")
def test_a_hive_table_is_taken_over_written_by_all_and_given_back(
    lake, namespace, spark_on_hdfs, iceberg_java, hdfs
):
    spark, name = spark_on_hdfs, f"{namespace}.t"
    spark.sql("SET hive.exec.dynamic.partition.mode=nonstrict")
    spark.sql(
        f"CREATE TABLE spark_catalog.{name} (id BIGINT, s STRING) PARTITIONED BY (m INT) STORED AS PARQUET"
    )
    spark.sql(f"INSERT INTO spark_catalog.{name} SELECT id, concat('s', id), id % 3 FROM range(30)")
    before = {each.location for each in lake.io.list(lake.properties["warehouse"])}
    assert any("/m=1/" in location for location in before)

    migrate.apply(lake, name)
    table = lake.load_table(name)
    assert table.location().startswith(hdfs.uri)
    assert {task.file.file_path for task in table.scan().plan_files()} <= before
    table.append(
        pa.table({"id": pa.array([100], pa.int64()), "s": ["x"], "m": pa.array([1], pa.int32())})
    )
    spark.sql(f"INSERT INTO on_hdfs.{name} VALUES (200, 'y', 2)")
    iceberg_java.sql(f"INSERT INTO ice.{name} VALUES (300, 'z', 0)")
    table.refresh()
    table.delete("id = 200")
    expected = [*range(30), 100, 300]
    assert ids(spark.sql(f"SELECT id FROM on_hdfs.{name}").collect()) == expected
    assert ids(iceberg_java.sql(f"SELECT id FROM ice.{name}")) == expected
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == expected
    found = table.scan(row_filter="m = 1 and id > 20").to_arrow()["id"].to_pylist()
    assert sorted(found) == [22, 25, 28, 100]
    after = {each.location for each in lake.io.list(lake.properties["warehouse"])}
    assert before <= after
    assert not [location for location in after if location.endswith(".tmp")]

    migrate.revert(lake, name, dry_run=False, allow_data_loss=True)
    spark.sql(f"REFRESH TABLE spark_catalog.{name}")
    assert ids(spark.sql(f"SELECT id FROM spark_catalog.{name}").collect()) == list(range(30))
    spark.sql(f"DROP TABLE spark_catalog.{name}")


def hosts_of_tasks(spark, text):
    """The hosts where Spark would best run each task of a query."""
    rdd = spark.sql(text)._jdf.queryExecution().toRdd()
    context = spark._jsc.sc()
    found = [context.getPreferredLocs(rdd, task) for task in range(rdd.getNumPartitions())]
    return [[places.apply(i).host() for i in range(places.size())] for places in found]


@pytest.mark.full(
    "asks Hadoop where the blocks of files lie; that tasks have places is a wish to Spark"
)
def test_tasks_are_run_where_hadoop_says_that_their_blocks_are(
    lake, namespace, spark_on_hdfs, catalog
):
    spark, name = spark_on_hdfs, f"{namespace}.blocks"
    table = lake.create_table(name, pa.schema([("id", pa.int64())]))
    for first in range(2):
        table.append(pa.table({"id": pa.array([first], pa.int64())}))
    [path, _] = (task.file.file_path for task in table.refresh().scan().plan_files())
    hadoop = spark._jvm.org.apache.hadoop.fs
    at = hadoop.Path(path)
    files = at.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    [block] = files.getFileBlockLocations(at, 0, files.getFileStatus(at).getLen())
    expected = list(block.getHosts())
    assert expected
    query = f"SELECT id FROM on_hdfs.{name}"
    spark.conf.set("spark.sql.iceberg.read.split-size", "1")
    try:
        assert hosts_of_tasks(spark, query) == [expected, expected]
        assert ids(spark.sql(query).collect()) == [0, 1]
        spark.conf.set("spark.sql.iceberg.locality.enabled", "false")
        assert hosts_of_tasks(spark, query) == [[], []]
        # an option goes before the setting; a file that is gone is for its task to report
        optional = f"{query} WITH (`locality` = 'true')"
        table.io.delete(path)
        assert sorted(hosts_of_tasks(spark, optional)) == sorted([[], expected])
    finally:
        spark.conf.unset("spark.sql.iceberg.locality.enabled")
        spark.conf.unset("spark.sql.iceberg.read.split-size")
        lake.drop_table(name)
    # nobody is asked about local files, unless the query wants it
    catalog.create_namespace("local_blocks")
    local = catalog.create_table("local_blocks.t", pa.schema([("id", pa.int64())]))
    local.append(pa.table({"id": pa.array([1], pa.int64())}))
    query = "SELECT id FROM lake.local_blocks.t"
    assert hosts_of_tasks(spark, query) == [[]]
    assert hosts_of_tasks(spark, f"{query} WITH (`locality` = 'true')") == [["localhost"]]
    catalog.drop_table("local_blocks.t")
    catalog.drop_namespace("local_blocks")


@pytest.mark.full("the same procedure on local files is in the gate")
def test_executors_list_orphans_on_hdfs(lake, namespace, spark_on_hdfs):
    spark, name = spark_on_hdfs, f"{namespace}.listed"
    table = lake.create_table(name, pa.schema([("id", pa.int64())]))
    for n in range(3):
        table.append(pa.table({"id": pa.array([n], pa.int64())}))
    left = [f"{table.location()}/data/{path}" for path in ("left.parquet", "de/ep/a b%20+.parquet")]
    for path in left:
        table.io.create(path, b"PAR1")
    hadoop = spark._jvm.org.apache.hadoop.fs
    at = hadoop.Path(table.location())
    files = at.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())
    for each in lake.io.list(table.location()):
        files.setTimes(hadoop.Path(each.location), 1_600_000_000_000, -1)
    young = f"{table.location()}/data/young.parquet"
    table.io.create(young, b"PAR1")
    call = f"CALL on_hdfs.system.remove_orphan_files(table => '{name}', engine => '{{}}'{{}})"
    here = spark.sql(call.format("local", ", dry_run => true")).collect()
    there = spark.sql(call.format("spark", ", dry_run => true")).collect()
    assert {row[0] for row in here} == {row[0] for row in there} == set(left)
    assert {row[0] for row in spark.sql(call.format("spark", "")).collect()} == set(left)
    assert ids(spark.sql(f"SELECT id FROM on_hdfs.{name}").collect()) == [0, 1, 2]
    assert [lake.io.exists(path) for path in (*left, young)] == [False, False, True]
    lake.drop_table(name)


def test_spark_reads_and_writes_tables_whose_files_are_named_by_their_web_address(spark, hdfs):
    """Spark's own webhdfs:// does not work: it is told hdfs://, and the table keeps its names."""
    warehouse = f"webhdfs://127.0.0.1:{hdfs.http['nn1']}/warehouse/{uuid.uuid4().hex}"
    user = {"hdfs.user": getpass.getuser()}
    for name, settings in {"on_web": hdfs.client_settings, "on_web_alone": {}}.items():
        prefix = f"spark.sql.catalog.{name}"
        options = {"python": sys.executable, "type": "hadoop", "warehouse": warehouse}
        spark.conf.set(prefix, CATALOG_CLASS)
        for key, value in {**options, **user, **settings}.items():
            spark.conf.set(f"{prefix}.{key}", value)
    files = load_catalog("files", type="hadoop", warehouse=warehouse, **user)
    files.create_namespace("db")
    table = files.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": pa.array([1, 2], pa.int64())}))
    spark.sql("INSERT INTO on_web.db.t VALUES (3)")
    assert ids(spark.sql("SELECT id FROM on_web.db.t").collect()) == [1, 2, 3]
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    named = [task.file.file_path for task in table.scan().plan_files()]
    assert len(named) == 2
    assert all(path.startswith(f"{warehouse}/db/t/data/") for path in named)
    for statement in (
        "SELECT id FROM on_web_alone.db.t",
        "INSERT INTO on_web_alone.db.t VALUES (4)",
    ):
        with pytest.raises(Exception, match=rf"(?s)Spark cannot open {warehouse}.*HADOOP_CONF_DIR"):
            spark.sql(statement).collect()
    assert table.refresh().scan().count() == 3


@pytest.mark.full("Iceberg Java in a second Spark")
def test_file_system_tables_are_shared_with_iceberg_java(hdfs, iceberg_java):
    warehouse = f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
    iceberg_java.sql("SET spark.sql.catalog.ice_hdfs=org.apache.iceberg.spark.SparkCatalog")
    iceberg_java.sql("SET spark.sql.catalog.ice_hdfs.type=hadoop")
    iceberg_java.sql(f"SET spark.sql.catalog.ice_hdfs.warehouse={warehouse}")
    iceberg_java.sql("SET `spark.sql.catalog.ice_hdfs.cache-enabled`=false")
    files = load_catalog(
        "files",
        type="hadoop",
        warehouse=warehouse,
        **{**hdfs.client_settings, "hdfs.user": getpass.getuser()},
    )
    iceberg_java.sql("CREATE TABLE ice_hdfs.db.theirs (id BIGINT) USING iceberg")
    iceberg_java.sql("INSERT INTO ice_hdfs.db.theirs VALUES (1)")
    theirs = files.load_table("db.theirs")
    theirs.append(pa.table({"id": pa.array([2], pa.int64())}))
    iceberg_java.sql("INSERT INTO ice_hdfs.db.theirs VALUES (3)")
    assert ids(iceberg_java.sql("SELECT id FROM ice_hdfs.db.theirs")) == [1, 2, 3]
    assert sorted(theirs.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]

    ours = files.create_table("db.ours", pa.schema([("id", pa.int64())]))
    ours.append(pa.table({"id": pa.array([4], pa.int64())}))
    iceberg_java.sql("INSERT INTO ice_hdfs.db.ours VALUES (5)")
    assert sorted(ours.refresh().scan().to_arrow()["id"].to_pylist()) == [4, 5]
    hints = {
        each.location.rpartition("/")[2]: each.location for each in files.io.list(ours.location())
    }
    assert files.io.read(hints["version-hint.text"]).strip() == b"3"
    files.io.delete(hints["version-hint.text"])
    ours.append(pa.table({"id": pa.array([6], pa.int64())}))
    assert ids(iceberg_java.sql("SELECT id FROM ice_hdfs.db.ours")) == [4, 5, 6]
    by_path = open_table(ours.location(), **hdfs.client_settings)
    assert by_path.scan().count() == 3


@pytest.fixture
def plain_catalogs(spark, hdfs, iceberg_java):
    """One warehouse that is named without a scheme, for Spark with us, for Iceberg Java, and for us."""
    warehouse = f"/warehouse/{uuid.uuid4().hex}"
    user = {**hdfs.client_settings, "hdfs.user": getpass.getuser()}
    prefix = "spark.sql.catalog.on_default"
    options = {"python": sys.executable, "type": "hadoop", "warehouse": warehouse}
    spark.conf.set(prefix, CATALOG_CLASS)
    for key, value in {**options, **user}.items():
        spark.conf.set(f"{prefix}.{key}", value)
    iceberg_java.sql("SET spark.sql.catalog.on_default=org.apache.iceberg.spark.SparkCatalog")
    for key, value in {
        "type": "hadoop",
        "warehouse": warehouse,
        "cache-enabled": "false",
        **{f"hadoop.{key}": value for key, value in hdfs.client_settings.items()},
    }.items():
        iceberg_java.sql(f"SET `{prefix}.{key}`={value}")
    yield load_catalog("files", type="hadoop", warehouse=warehouse, **user)
    for key in [key for key in spark.conf.getAll if key.startswith(prefix)]:
        spark.conf.unset(key)


@pytest.mark.full("Iceberg Java in a second Spark")
def test_locations_without_a_scheme_are_in_the_default_file_system_for_everybody(
    plain_catalogs, spark, hdfs, iceberg_java
):
    files, warehouse = plain_catalogs, plain_catalogs.properties["warehouse"]
    spark.sql("CREATE NAMESPACE on_default.db")
    spark.sql(
        "CREATE TABLE on_default.db.t (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k) "
        "TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    )
    spark.sql("INSERT INTO on_default.db.t SELECT id, concat('k', id % 2) FROM range(20)")
    table = files.load_table("db.t")
    assert table.location() == f"{warehouse}/db/t"
    table.append(pa.table({"id": pa.array([100], pa.int64()), "k": ["k1"]}))
    paths = [task.file.file_path for task in table.scan().plan_files()]
    assert paths
    assert not Path(warehouse).exists()
    settings = {**files.properties, "type": "hadoop", "warehouse": f"{hdfs.uri}{warehouse}"}
    on_hdfs = load_catalog("hdfs", **settings)
    assert [each[-1] for each in on_hdfs.list_tables("db")] == ["t"]
    assert all(on_hdfs.io.exists(f"{hdfs.uri}{path}") for path in paths)
    # delete files of each, and rows by each
    spark.sql("DELETE FROM on_default.db.t WHERE id = 3")
    table.refresh().delete("id = 5")
    iceberg_java.sql("DELETE FROM on_default.db.t WHERE id = 7")
    iceberg_java.sql("INSERT INTO on_default.db.t VALUES (200, 'k0')")
    expected = sorted({*range(20), 100, 200} - {3, 5, 7})
    query = "SELECT id FROM on_default.db.t"
    assert ids(spark.sql(query).collect()) == expected
    assert ids(iceberg_java.sql(query)) == expected
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == expected
    # files that are taken in by a path without a scheme are those on HDFS, whatever lies at it here
    folder = f"{warehouse}/outside"
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array([300], pa.int64())}), sink)
    files.io.create(f"{hdfs.uri}{folder}/k=k9/a.parquet", sink.getvalue().to_pybytes())
    spark.sql(
        f"CALL on_default.system.add_files(table => 'db.t', source_table => '`parquet`.`{folder}`')"
    )
    expected.append(300)
    assert ids(spark.sql(query).collect()) == expected
    assert ids(iceberg_java.sql(query)) == expected
    with pytest.raises(Exception, match="already"):
        table.refresh().add_files([f"{hdfs.uri}{folder}/k=k9/a.parquet"])
    for location in (f"{warehouse}/db/t", f"{hdfs.uri}{warehouse}/db/t"):
        assert by_path_rows(location, files.properties) == expected
    assert ids(spark.sql(f"SELECT id FROM on_default.`{warehouse}/db/t`").collect()) == expected
    spark.sql("DROP TABLE on_default.db.t PURGE")
    assert not files.io.is_folder(f"{hdfs.uri}{warehouse}/db/t")
    spark.sql("DROP NAMESPACE on_default.db")


def by_path_rows(location, properties):
    settings = {k: v for k, v in properties.items() if k not in {"type", "warehouse"}}
    return sorted(open_table(location, **settings).scan().to_arrow()["id"].to_pylist())


@pytest.mark.full("Iceberg Java in a second Spark")
def test_iceberg_java_works_beside_a_ticket(hdfs, iceberg_java):
    """It lies in the folder of metadata, which Java lists where the hint is missing."""
    warehouse = f"{hdfs.uri}/warehouse/{uuid.uuid4().hex}"
    iceberg_java.sql("SET spark.sql.catalog.ice_turns=org.apache.iceberg.spark.SparkCatalog")
    iceberg_java.sql("SET spark.sql.catalog.ice_turns.type=hadoop")
    iceberg_java.sql(f"SET spark.sql.catalog.ice_turns.warehouse={warehouse}")
    iceberg_java.sql("SET `spark.sql.catalog.ice_turns.cache-enabled`=false")
    user = {**hdfs.client_settings, "hdfs.user": getpass.getuser()}
    files = load_catalog("files", type="hadoop", warehouse=warehouse, **user)
    files.create_namespace("db")
    table = files.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    pointer, metadata = table._pointer, f"{table.location()}/metadata"
    with Holding() as held:
        pointer.queue(held)
        assert pointer.wait_in_queue(pointer.load())
        assert len(files.io.folders(f"{metadata}/{WAITING}")) == 1
        iceberg_java.sql("INSERT INTO ice_turns.db.t VALUES (2)")
        files.io.delete(f"{metadata}/version-hint.text")
        iceberg_java.sql("INSERT INTO ice_turns.db.t VALUES (3)")
        assert ids(iceberg_java.sql("SELECT id FROM ice_turns.db.t")) == [1, 2, 3]
        assert len(files.io.folders(f"{metadata}/{WAITING}")) == 1
    table.append(pa.table({"id": pa.array([4], pa.int64())}))
    assert ids(iceberg_java.sql("SELECT id FROM ice_turns.db.t")) == [1, 2, 3, 4]
    assert files.io.folders(metadata) == []


def test_tasks_of_a_canceled_statement_leave_no_file(lake, namespace, spark_on_hdfs, hdfs):
    """They are interrupted, and delete their files themselves."""
    spark, name = spark_on_hdfs, f"{namespace}.canceled"
    spark.sql(
        f"CREATE TABLE on_hdfs.{name} (id BIGINT, k BIGINT) "
        "TBLPROPERTIES ('write.parquet.row-group-size-bytes' = '100000')"
    )
    table = lake.load_table(name)
    hadoop = spark._jvm.org.apache.hadoop.fs
    folder = hadoop.Path(f"{table.location()}/data")
    system = folder.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf())

    def files():
        return list(system.listStatus(folder)) if system.exists(folder) else []

    def write():
        spark.sparkContext.setJobGroup("canceled", "a long statement", interruptOnCancel=True)
        spark.sql(f"INSERT INTO on_hdfs.{name} SELECT id, hash(id) FROM range(0, {10**11}, 1, 2)")

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(write)
        while len(files()) < 2:
            assert not running.done(), running.exception()
            time.sleep(0.05)
        spark.sparkContext.cancelJobGroup("canceled")
        assert running.exception(120) is not None
    deadline = time.monotonic() + 60
    while files() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert [each.getPath().getName() for each in files()] == []
    assert table.refresh().scan().count() == 0
    spark.sql(f"DROP TABLE on_hdfs.{name}")
