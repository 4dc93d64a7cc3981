"""Tables made or replaced together with their rows: all of it in one commit, or nothing."""

from __future__ import annotations

import itertools
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import functions as f

from icecomb.format.errors import NoSuchTableError
from icecomb.format.rows.write.location_provider import load_location_provider
from tests.peers.dead_writers import kill, planner
from tests.rings import sampled
from tests.spark.lake_table import load
from tests.spark.standing_still import FUNCTION, StandingStill

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "staged_tests"
NUMBERS = itertools.count(1)
# the first task's file is finished long before the second task fails, whose file is open then
FAILING = (
    "SELECT id, 'x' AS s FROM range(0, 10, 1, 1) UNION ALL "
    "SELECT id, IF(id = 299999, raise_error('no more rows'), 'y') FROM range(0, 300000, 1, 1)"
)


@pytest.fixture
def name(catalog):
    """A name below the namespace that is free."""
    table = f"t{next(NUMBERS)}"
    yield f"lake.{NAMESPACE}.{table}"
    if catalog.table_exists((NAMESPACE, table)):
        catalog.drop_table((NAMESPACE, table))


@pytest.fixture
def orders(spark, catalog, name):
    """A partitioned table with one snapshot, a tag and a branch on it, and properties."""
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT, s STRING) USING iceberg PARTITIONED BY (s) "
        "COMMENT 'the first' TBLPROPERTIES ('a'='1', 'b'='1')"
    )
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    with load(catalog, name).manage_snapshots() as manage:
        [snapshot] = load(catalog, name).snapshots()
        manage.create_tag(snapshot.snapshot_id, "kept")
        manage.create_branch(snapshot.snapshot_id, "audit")
    return name


def files(catalog, name):
    """All files in the folder that a table of this name has, or would have."""
    database, table = name.removeprefix("lake.").split(".")
    folder = catalog.entries.default_location((database, table)).removeprefix("file:")
    return sorted(str(path) for path in Path(folder).rglob("*") if path.is_file())


def ids(spark, name):
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {name}").collect())


def layout(table):
    return [(field.name, str(field.transform)) for field in table.spec().fields]


MADE_AT_ONCE = (
    "CREATE TABLE {} USING iceberg PARTITIONED BY (bucket(4, id), days(ts)) "
    "COMMENT 'made at once' TBLPROPERTIES ('write.parquet.compression-codec'='gzip', 'k'='v') "
    "AS SELECT id, TIMESTAMP '2026-01-01 00:00:00' + make_interval(0, 0, 0, CAST(id AS INT)) "
    "AS ts, named_struct('x', id) AS inner, array(id) AS list FROM range(0, 10, 1, 2)"
)
REPLACED = (
    "REPLACE TABLE {} USING iceberg PARTITIONED BY (bucket(2, id)) "
    "TBLPROPERTIES ('b'='2', 'c'='2') AS SELECT 'new' AS n, id + 10 AS id FROM range(3)"
)


def test_a_table_is_created_with_rows_partitions_and_properties_in_one_commit(
    spark, catalog, pyiceberg, name
):
    spark.sql(MADE_AT_ONCE.format(name))
    table = load(catalog, name)
    assert table.metadata.metadata_log == ()
    [snapshot] = table.snapshots()
    assert snapshot.summary["added-records"] == "10"
    assert snapshot.summary["engine-name"] == "spark"
    assert layout(table) == [("id_bucket", "bucket[4]"), ("ts_day", "day")]
    assert table.properties["write.parquet.compression-codec"] == "gzip"
    assert (table.properties["k"], table.properties["comment"]) == ("v", "made at once")
    assert table.schema().field_ids == {1, 2, 3, 4, 5, 6}
    assert ids(spark, name) == [*range(10)]
    peer = pyiceberg.load_table(name[5:]).scan("id = 7").to_arrow()
    assert peer.column("inner").to_pylist() == [{"x": 7}]


def test_a_replaced_table_keeps_identity_history_and_refs(spark, catalog, pyiceberg, orders):
    before = load(catalog, orders)
    spark.sql(REPLACED.format(orders))
    after = load(catalog, orders)
    assert after.metadata.table_uuid == before.metadata.table_uuid
    assert after.location() == before.location()
    assert [e.metadata_file for e in after.metadata.metadata_log] == [
        *(e.metadata_file for e in before.metadata.metadata_log),
        before.metadata_location,
    ]
    old, new = after.snapshots()
    assert old == before.current_snapshot()
    assert (new.parent_snapshot_id, new.snapshot_id) == (None, after.current_snapshot().snapshot_id)
    assert after.refs()["kept"] == before.refs()["kept"]
    assert after.refs()["audit"] == before.refs()["audit"]
    assert [(c.name, c.field_id) for c in after.schema().fields] == [("n", 3), ("id", 1)]
    assert layout(after) == [("id_bucket", "bucket[2]")]
    found = {key: after.properties[key] for key in ("a", "b", "c", "comment")}
    assert found == {"a": "1", "b": "2", "c": "2", "comment": "the first"}
    assert sorted(pyiceberg.load_table(orders[5:]).scan().to_arrow()["id"].to_pylist()) == [
        *(10, 11, 12),
    ]
    assert ids(spark, f"{orders} VERSION AS OF 'kept'") == [1, 2]
    assert sorted(after.scan().use_ref("kept").to_arrow()["id"].to_pylist()) == [1, 2]


def test_iceberg_java_reads_what_was_made_and_replaced_at_once(
    spark, catalog, iceberg_java, orders
):
    made = f"{orders}_made"
    spark.sql(MADE_AT_ONCE.format(made))
    [rows] = iceberg_java.sql(
        f"SELECT count(*), sum(id), sum(inner.x), sum(list[0]) FROM ice.{made[5:]} "
        "WHERE ts >= TIMESTAMP '2026-01-03 00:00:00'"
    )
    assert rows == [8, 44, 44, 44]
    catalog.drop_table(made[5:])
    [old] = load(catalog, orders).snapshots()
    spark.sql(REPLACED.format(orders))
    java = f"ice.{orders[5:]}"
    assert sorted(iceberg_java.sql(f"SELECT n, id FROM {java}")) == [
        ["new", 10], ["new", 11], ["new", 12],
    ]  # fmt: skip
    for version in ("'kept'", str(old.snapshot_id)):
        was = sorted(iceberg_java.sql(f"SELECT id, s FROM {java} VERSION AS OF {version}"))
        assert was == [[1, "a"], [2, "b"]]
    # a branch is read as the table is, which has no s any more
    assert sorted(iceberg_java.sql(f"SELECT id, n FROM {java} VERSION AS OF 'audit'")) == [
        [1, None], [2, None],
    ]  # fmt: skip
    assert iceberg_java.sql(f"SELECT count(*) FROM {java}.history") == [[2]]


def test_iceberg_java_replaces_a_table_of_spark_the_same_way(
    spark, catalog, iceberg_java, orders, name
):
    twin = f"lake.{NAMESPACE}.twin"
    spark.sql(
        f"CREATE TABLE {twin} (id BIGINT, s STRING) USING iceberg PARTITIONED BY (s) "
        "COMMENT 'the first' TBLPROPERTIES ('a'='1', 'b'='1')"
    )
    spark.sql(f"INSERT INTO {twin} VALUES (1, 'a'), (2, 'b')")
    statement = (
        "CREATE OR REPLACE TABLE {} USING iceberg PARTITIONED BY (s, bucket(2, id)) "
        "TBLPROPERTIES ('b'='2') AS SELECT 'new' AS s, id FROM range(3)"
    )
    spark.sql(statement.format(name))
    iceberg_java.sql(statement.format(f"ice.{twin[5:]}"))
    ours, theirs = load(catalog, orders), load(catalog, twin)
    assert ours.schema().fields == theirs.schema().fields
    assert ours.spec() == theirs.spec()
    assert dict(ours.properties) == {
        **theirs.properties, "owner": ours.properties["owner"]
    }  # fmt: skip
    assert [s.parent_snapshot_id is None for s in ours.snapshots()] == [
        s.parent_snapshot_id is None for s in theirs.snapshots()
    ]
    catalog.drop_table((NAMESPACE, "twin"))


def test_a_table_is_replaced_by_a_query_of_itself(spark, catalog, orders):
    spark.sql(f"CREATE OR REPLACE TABLE {orders} AS SELECT id * 2 AS id, s FROM {orders}")
    assert ids(spark, orders) == [2, 4]
    assert layout(load(catalog, orders)) == []
    spark.sql(f"REPLACE TABLE {orders} AS SELECT id FROM {orders} VERSION AS OF 'kept'")
    assert ids(spark, orders) == [1, 2]


def test_without_a_query_a_replaced_table_is_empty_and_keeps_its_history(spark, catalog, orders):
    before = load(catalog, orders)
    spark.sql(f"REPLACE TABLE {orders} (id BIGINT, n INT) USING iceberg PARTITIONED BY (n)")
    after = load(catalog, orders)
    assert after.metadata.table_uuid == before.metadata.table_uuid
    assert len(after.metadata.metadata_log) == len(before.metadata.metadata_log) + 1
    assert (after.current_snapshot(), after.snapshots()) == (None, before.snapshots())
    assert [(c.name, c.field_id) for c in after.schema().fields] == [("id", 1), ("n", 3)]
    assert spark.table(orders).collect() == []
    assert ids(spark, f"{orders} VERSION AS OF 'kept'") == [1, 2]
    spark.sql(f"INSERT INTO {orders} VALUES (5, 1)")
    assert ids(spark, orders) == [5]


def test_a_query_without_rows_makes_an_empty_table(spark, catalog, orders):
    spark.sql(f"CREATE OR REPLACE TABLE {orders} AS SELECT id FROM range(3) WHERE id > 5")
    assert load(catalog, orders).current_snapshot() is None
    assert len(load(catalog, orders).snapshots()) == 1
    new = f"{orders}_new"
    spark.sql(f"CREATE OR REPLACE TABLE {new} AS SELECT id FROM range(3) WHERE id > 5")
    assert load(catalog, new).snapshots() == []
    catalog.drop_table(new.removeprefix("lake."))


def test_data_frames_create_and_replace(spark, catalog, name):
    rows = spark.range(4)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        rows.writeTo(name).using("iceberg").replace()
    rows.writeTo(name).using("iceberg").partitionedBy(f.partitioning.bucket(2, "id")).tableProperty(
        "k", "1"
    ).create()
    table = load(catalog, name)
    assert (layout(table), table.properties["k"]) == ([("id_bucket", "bucket[2]")], "1")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        rows.writeTo(name).using("iceberg").create()
    spark.range(2).writeTo(name).using("iceberg").replace()
    spark.range(3).writeTo(name).using("iceberg").tableProperty("k", "2").createOrReplace()
    after = load(catalog, name)
    assert after.metadata.table_uuid == table.metadata.table_uuid
    assert (len(after.snapshots()), after.properties["k"]) == (3, "2")
    assert len(after.metadata.metadata_log) == 2
    assert ids(spark, name) == [0, 1, 2]
    assert ids(spark, f"{name} VERSION AS OF {table.current_snapshot().snapshot_id}") == [*range(4)]


@pytest.mark.parametrize("statement", sampled(["CREATE OR REPLACE TABLE", "CREATE TABLE"], keep=1))
def test_a_failing_query_makes_no_table_and_leaves_no_file(spark, catalog, name, statement):
    with pytest.raises(PySparkException, match="no more rows"):
        spark.sql(f"{statement} {name} USING iceberg AS {FAILING}")
    with pytest.raises(NoSuchTableError):
        load(catalog, name)
    assert files(catalog, name) == []


@pytest.mark.parametrize("statement", sampled(["REPLACE TABLE", "CREATE OR REPLACE TABLE"], keep=1))
def test_a_failing_query_leaves_the_old_table_with_its_history(spark, catalog, orders, statement):
    before, held = load(catalog, orders), files(catalog, orders)
    with pytest.raises(PySparkException, match="no more rows"):
        spark.sql(f"{statement} {orders} USING iceberg PARTITIONED BY (bucket(2, id)) AS {FAILING}")
    assert load(catalog, orders).metadata_location == before.metadata_location
    assert files(catalog, orders) == held
    assert ids(spark, orders) == ids(spark, f"{orders} VERSION AS OF 'kept'") == [1, 2]


def test_a_refused_definition_leaves_the_old_table(spark, catalog, orders):
    before, held = load(catalog, orders), files(catalog, orders)
    for clause, message in (
        ("USING csv", "creates Iceberg tables, not csv"),
        ("TBLPROPERTIES ('format-version'='1')", "format"),
        ("TBLPROPERTIES ('write.format.default'='csv')", "write.format.default cannot be 'csv'"),
    ):
        with pytest.raises(PySparkException, match=message):
            spark.sql(f"CREATE OR REPLACE TABLE {orders} {clause} AS SELECT id FROM range(3)")
    assert load(catalog, orders).metadata_location == before.metadata_location
    assert files(catalog, orders) == held


def test_names_that_are_taken_and_names_that_are_free(spark, catalog, orders):
    before = load(catalog, orders).metadata_location
    spark.sql(f"CREATE TABLE IF NOT EXISTS {orders} AS {FAILING}")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        spark.sql(f"CREATE TABLE {orders} AS SELECT id FROM range(3)")
    assert load(catalog, orders).metadata_location == before
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql(f"REPLACE TABLE {orders}_new AS SELECT id FROM range(3)")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {orders}_new AS SELECT id FROM range(3)")
    assert ids(spark, f"{orders}_new") == [0, 1, 2]
    catalog.drop_table(f"{orders}_new".removeprefix("lake."))


def test_a_table_that_is_not_icebergs_is_never_replaced(spark, catalog):
    plain = f"{NAMESPACE}.plain"
    spark.sql(f"CREATE TABLE spark_catalog.{plain} USING parquet AS SELECT 1 AS id")
    try:
        for verb in ("CREATE OR REPLACE", "REPLACE", "CREATE"):
            with pytest.raises(PySparkException):
                spark.sql(f"{verb} TABLE lake.{plain} AS SELECT id FROM range(3)")
        assert ids(spark, f"spark_catalog.{plain}") == [1]
    finally:
        spark.sql(f"DROP TABLE spark_catalog.{plain}")


@pytest.fixture
def slow(spark, tmp_path):
    """Runs a statement on the view `slow`, and something else in the middle of its rows."""
    found = StandingStill(spark, tmp_path)
    rows = spark.range(0, 4, 1, 2).selectExpr(f"{FUNCTION}(id) AS id")
    rows.createOrReplaceTempView("slow")
    yield found
    spark.catalog.dropTempView("slow")
    found.close()


@pytest.mark.parametrize("statement", sampled(["CREATE OR REPLACE TABLE", "CREATE TABLE"], keep=1))
def test_a_name_that_others_take_meanwhile_is_theirs(spark, catalog, name, slow, statement):
    def take():
        catalog.create_table(name[5:], pa.schema([("theirs", pa.int64())]))

    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        slow.run(f"{statement} {name} AS SELECT id FROM slow", take)
    table = load(catalog, name)
    assert [field.name for field in table.schema().fields] == ["theirs"]
    assert files(catalog, name) == [table.metadata_location.removeprefix("file:")]


OF_ITSELF = {
    "itself": "SELECT {f}(id) AS id, s FROM {t}",
    "a view of it": "SELECT {f}(id) AS id, s FROM of_orders",
    "a subquery": "SELECT {f}(id) AS id, 'x' AS s FROM range(2) "
    "WHERE id <= (SELECT max(id) FROM {t})",
}


@pytest.mark.parametrize("query", sampled(OF_ITSELF, keep=1))
def test_a_table_is_not_replaced_by_rows_of_it_that_lack_what_others_appended(
    spark, catalog, orders, slow, query
):
    def append():
        load(catalog, orders).append(pa.table({"id": pa.array([3]), "s": ["c"]}))

    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW of_orders AS SELECT * FROM {orders}")
    held = files(catalog, orders)
    text = OF_ITSELF[query].format(f=FUNCTION, t=orders)
    with pytest.raises(PySparkException, match="cannot be replaced by rows of its own"):
        slow.run(f"CREATE OR REPLACE TABLE {orders} AS {text}", append)
    assert ids(spark, orders) == [1, 2, 3]
    assert len(files(catalog, orders)) == len(held) + 4
    spark.sql(f"REPLACE TABLE {orders} AS {text}")
    assert load(catalog, orders).current_snapshot().parent_snapshot_id is None
    spark.catalog.dropTempView("of_orders")


@pytest.mark.sparks("3.5", "4.0", "4.1", "4.2")
def test_nor_is_it_on_another_spark(other_spark, catalog, orders, minor, tmp_path):
    other, still = other_spark(minor), f"still{next(NUMBERS)}"
    started, go = tmp_path / "started", tmp_path / "go"
    code = f"""
def {still}(key):
    import pathlib, time
    pathlib.Path({str(started)!r}).touch()
    while not pathlib.Path({str(go)!r}).exists():
        time.sleep(0.02)
    return key
"""
    other.function(still, code, "bigint")
    with ThreadPoolExecutor(1) as pool:
        text = f"CREATE OR REPLACE TABLE {orders} AS SELECT {still}(id) AS id, s FROM {orders}"
        running = pool.submit(other.sql, text)
        try:
            while not (started.exists() or running.done()):
                time.sleep(0.02)
            load(catalog, orders).append(pa.table({"id": pa.array([3]), "s": ["c"]}))
        finally:
            go.touch()
        with pytest.raises(AssertionError, match="cannot be replaced by rows of its own"):
            running.result()
    assert sorted(load(catalog, orders).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    other.sql(text)
    assert sorted(load(catalog, orders).scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_rows_that_others_append_meanwhile_are_part_of_the_history(spark, catalog, orders, slow):
    def append():
        load(catalog, orders).append(pa.table({"id": pa.array([3]), "s": ["c"]}))

    slow.run(f"REPLACE TABLE {orders} AS SELECT id FROM slow", append)
    table = load(catalog, orders)
    assert ids(spark, orders) == [0, 1, 2, 3]
    _, appended, replaced = table.snapshots()
    assert (appended.summary["added-records"], replaced.parent_snapshot_id) == ("1", None)
    assert ids(spark, f"{orders} VERSION AS OF {appended.snapshot_id}") == [1, 2, 3]


def test_a_table_that_others_dropped_meanwhile_is_not_brought_back(spark, catalog, orders, slow):
    held = files(catalog, orders)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        slow.run(
            f"REPLACE TABLE {orders} AS SELECT id FROM slow",
            lambda: catalog.drop_table(orders[5:]),
        )
    assert not catalog.table_exists(orders[5:])
    assert files(catalog, orders) == held


def test_a_planner_that_dies_meanwhile_fails_the_statement_and_no_file_stays(
    spark, catalog, orders, slow
):
    before, held = load(catalog, orders), files(catalog, orders)

    with pytest.raises(Py4JJavaError, match="the icecomb planner was restarted in the meantime"):
        slow.run(f"REPLACE TABLE {orders} AS SELECT id FROM slow", lambda: kill(planner(spark)))
    assert load(catalog, orders).metadata_location == before.metadata_location
    assert files(catalog, orders) == held
    assert ids(spark, orders) == [1, 2]


def test_a_failure_in_a_catalog_of_folders_leaves_no_namespace_behind(spark, tmp_path):
    for key, value in {
        "": "org.icecomb.spark.IcecombCatalog",
        ".type": "hadoop",
        ".warehouse": str(tmp_path),
        ".python": sys.executable,
    }.items():
        spark.conf.set(f"spark.sql.catalog.folders{key}", value)
    spark.sql("CREATE NAMESPACE folders.db")
    with pytest.raises(PySparkException, match="no more rows"):
        spark.sql(f"CREATE TABLE folders.db.t AS {FAILING}")
    assert list((tmp_path / "db").iterdir()) == []
    spark.sql("CREATE TABLE folders.db.t AS SELECT id FROM range(3)")
    spark.sql("REPLACE TABLE folders.db.t AS SELECT id FROM range(4)")
    assert ids(spark, "folders.db.t") == [0, 1, 2, 3]
    assert sorted(path.name for path in tmp_path.glob("db/t/metadata/*.metadata.json")) == [
        "v1.metadata.json", "v2.metadata.json",
    ]  # fmt: skip


@pytest.mark.full("the names are made by one function, tested plainly")
def test_files_are_spread_over_an_object_store_as_python_spreads_them(spark, catalog, name):
    for properties in (
        "'write.object-storage.partitioned-paths'='true'",
        "'write.object-storage.partitioned-paths'='false'",
        f"'write.object-storage.partitioned-paths'='true', 'write.data.path'='{catalog.entries.default_location((NAMESPACE, 'outside'))}/ä'",
    ):
        spark.sql(
            f"CREATE OR REPLACE TABLE {name} PARTITIONED BY (s) TBLPROPERTIES "
            f"('write.object-storage.enabled'='true', {properties}) "
            "AS SELECT id, concat('ö ', id % 3) AS s FROM range(9)"
        )
        table = load(catalog, name)
        provider = load_location_provider(table.io, table.location(), table.properties)
        found = [task.file.file_path for task in table.scan().plan_files()]
        assert len(found) == 3
        for path in found:
            folder, file = path.rsplit("/", 1)
            if "partitioned-paths'='false" in properties:
                file = file[file.index("-") + 1 :]
            partition = folder.rsplit("/", 1)[1] if "s=" in folder else None
            assert path == provider.new_data_location(file, partition)
        assert ids(spark, name) == [*range(9)]
