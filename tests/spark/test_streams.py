"""Streaming queries over our tables: what they read, what stops them, and Iceberg Java's checkpoints."""

from __future__ import annotations

import itertools
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import LongType, NestedField, StringType
from tests.peers.spark_process import SMALL

NAMESPACE = "streams"
NUMBERS = itertools.count(1)
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))


@pytest.fixture
def table(catalog, namespace):
    table = catalog.create_table((namespace, f"t{next(NUMBERS)}"), SCHEMA)
    yield table
    catalog.drop_table(table.identifier)


def append(table, *ids):
    """One commit."""
    table.append(pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{i}" for i in ids]}))


def name(table, catalog="lake"):
    return ".".join((catalog, *table.identifier))


def batches(rows, checkpoint, **trigger):
    """The ids of each batch of a query that ends with what there is."""
    found = []

    def keep(frame, number):
        found.append(sorted(row["id"] for row in frame.collect()))

    writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(**(trigger or {"availableNow": True})).start()
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()
    return found


def stored(spark, folder):
    return sorted(row["id"] for row in spark.read.parquet(str(folder)).collect())


def test_a_table_is_followed_by_name_by_format_and_by_place(spark, table, tmp_path, only_lake):
    append(table, 1, 2)
    append(table, 3)
    limited = spark.readStream.option("streaming-max-files-per-micro-batch", "1").table(name(table))
    assert limited.isStreaming
    assert batches(limited, tmp_path / "a") == [[1, 2], [3]]
    assert batches(limited, tmp_path / "a") == []
    append(table, 4)
    assert batches(limited.filter("id > 1").select("id"), tmp_path / "a") == [[4]]
    named = spark.readStream.format("iceberg").load(name(table))
    assert batches(named, tmp_path / "b", once=True) == [[1, 2, 3, 4]]
    with table.update_spec() as update:
        update.add_identity("s")
    append(table, 5, 6)
    found = batches(named.where("s = 's6'"), tmp_path / "b")
    assert found == [[6]]
    folders = HadoopCatalog("folders", {"warehouse": str(tmp_path / "warehouse")})
    folders.create_namespace("db")
    there = folders.create_table(("db", "t"), SCHEMA)
    append(there, 1, 2)
    placed = spark.readStream.format("icecomb").load(there.location())
    assert batches(placed.where("s = 's2'"), tmp_path / "c") == [[2]]
    counted = spark.readStream.table(name(table)).selectExpr("count(*) AS id")
    writer = counted.writeStream.format("memory").queryName("streams_count").outputMode("complete")
    query = (
        writer.option("checkpointLocation", str(tmp_path / "d")).trigger(availableNow=True).start()
    )
    assert query.awaitTermination(120)
    assert [row["id"] for row in spark.table("streams_count").collect()] == [6]


def test_a_query_follows_a_table_while_it_grows_and_keeps_its_columns(spark, table, tmp_path):
    seen, came = [], threading.Condition()

    def keep(frame, number):
        rows = frame.collect()
        with came:
            seen.extend((frame.columns, row["id"]) for row in rows)
            came.notify_all()

    rows = spark.readStream.table(name(table))
    writer = rows.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(processingTime="100 milliseconds").start()
    try:
        for i in range(3):
            append(table, i)
            if i == 1:
                with table.update_schema() as update:
                    update.add_column("more", LongType()).rename_column("s", "t")
                table.append(pa.table({"id": [7], "t": ["x"], "more": pa.array([1], pa.int64())}))
                break
        with came:
            assert came.wait_for(lambda: len(seen) == 3 or not query.isActive, 120)
    finally:
        query.stop()
    assert query.exception() is None
    assert sorted(seen) == [(["id", "s"], 0), (["id", "s"], 1), (["id", "s"], 7)]


def test_what_a_stream_cannot_read_is_an_error_with_a_way_out(spark, table, tmp_path):
    append(table, 1)
    with pytest.raises(PySparkException, match="not the option tag"):
        batches(spark.readStream.option("tag", "kept").table(name(table)), tmp_path / "a")
    with pytest.raises(PySparkException, match="no branch that is called side"):
        batches(spark.readStream.option("branch", "side").table(name(table)), tmp_path / "a")
    rows = spark.readStream.table(name(table))
    assert batches(rows, tmp_path / "b") == [[1]]
    spark.sql(f"DELETE FROM {name(table)} WHERE id = 1")
    with pytest.raises(PySparkException, match="streaming-skip-delete-snapshots"):
        batches(rows, tmp_path / "b")
    append(table.refresh(), 2)
    skipping = spark.readStream.option("streaming-skip-delete-snapshots", "true").table(name(table))
    assert batches(skipping, tmp_path / "b") == [[2]]
    with pytest.raises(PySparkException, match="does not support"):
        batches(spark.readStream.table(f"{name(table)}.snapshots"), tmp_path / "c")


FOLLOWER = """
import json, sys, icecomb.spark
conf, table, checkpoint, into = json.loads(sys.argv[1]), *sys.argv[2:]
spark = icecomb.spark.session("lake", **conf)
rows = spark.readStream.option("streaming-max-files-per-micro-batch", "1").table(table)
writer = rows.writeStream.format("parquet").option("path", into)
writer.option("checkpointLocation", checkpoint).start().awaitTermination()
"""


@pytest.mark.full("another Spark, which is killed")
@pytest.mark.seeds(1)
def test_a_query_whose_process_is_killed_goes_on_elsewhere_with_each_row_once(
    spark, metastore, table, tmp_path, seed
):
    """Another process follows the table and is killed while it does; this one goes on after it."""
    chance = random.Random(seed)
    ids = itertools.count()
    append(table, next(ids))
    checkpoint, into = tmp_path / "checkpoint", tmp_path / "into"
    client = {f"spark.hadoop.{key}": value for key, value in metastore.client_settings.items()}
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    conf = json.dumps({**place, **SMALL, **client})
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", FOLLOWER, conf, name(table), str(checkpoint), str(into)],
            env={**os.environ, "HADOOP_TOKEN_FILE_LOCATION": str(metastore.token_file)},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        for wanted in range(1, 3 + chance.randrange(3)):
            append(table, *(next(ids) for _ in range(chance.randrange(1, 4))))
            while len(list((checkpoint / "commits").glob("[0-9]*"))) < wanted:
                assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
                time.sleep(0.02)
        append(table, next(ids))
        # somewhere in a batch, or between two
        time.sleep(chance.random())
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for _ in range(2):
        append(table, next(ids))
        rows = spark.readStream.option("streaming-max-files-per-micro-batch", "3").table(
            name(table)
        )
        writer = rows.writeStream.format("parquet").option("path", str(into))
        query = (
            writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        )
        assert query.awaitTermination(120)
    assert stored(spark, into) == list(range(next(ids)))


@pytest.mark.parametrize("first_is_ours", [True, False])
def test_checkpoints_of_iceberg_java_go_on_with_us_and_ours_with_it(
    spark, iceberg_java, other_spark, table, tmp_path, first_is_ours
):
    """The same version of Spark, so that only the offsets of the source are in question."""
    ours = (other_spark("4.1"), name(table))
    theirs = (iceberg_java, name(table, "ice"))
    checkpoint, into = tmp_path / "checkpoint", tmp_path / "into"
    turns = [ours, theirs] if first_is_ours else [theirs, ours]
    ids = itertools.count()
    for number, (engine, followed) in enumerate(turns * 2):
        append(table, next(ids))
        kind = ("orc", "avro", "parquet")[number % 3]
        iceberg_java.sql(
            f"ALTER TABLE {name(table, 'ice')} SET TBLPROPERTIES ('write.format.default'='{kind}')"
        )
        values = ", ".join(f"({next(ids)}, 'x')" for _ in range(3))
        iceberg_java.sql(f"INSERT INTO {name(table, 'ice')} VALUES {values}")
        iceberg_java.sql(
            f"CALL ice.system.rewrite_data_files('{NAMESPACE}.{table.identifier[-1]}')"
        )
        limit = {"streaming-max-files-per-micro-batch": str(number % 2 + 1)}
        if engine is ours[0]:  # there it changes nothing
            limit["async-micro-batch-planning-enabled"] = "true"
        engine.stream(followed, checkpoint, into, **limit)
        table.refresh()
        assert stored(spark, into) == list(range(4 * (number + 1)))
    offset = json.loads((checkpoint / "sources" / "0" / "offsets" / "0").read_text())
    assert offset == {
        "version": 1, "snapshot_id": table.snapshots()[0].snapshot_id, "position": 0, "scan_all_files": False,
    }  # fmt: skip


def test_a_new_query_reads_what_one_of_iceberg_java_reads(spark, iceberg_java, table, tmp_path):
    """Deletes of later commits do not reach the rows of an append, in both; nor do other branches."""
    theirs = name(table, "ice")
    iceberg_java.sql(
        f"ALTER TABLE {theirs} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    )
    for statement in (
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        "DELETE FROM {t} WHERE id = 2",
        "INSERT INTO {t} VALUES (4, 'd')",
        "INSERT OVERWRITE {t} VALUES (5, 'e')",
        "ALTER TABLE {t} CREATE BRANCH side",
        "INSERT INTO {t}.branch_side VALUES (6, 'f')",
        "INSERT INTO {t} VALUES (7, 'g')",
    ):
        iceberg_java.sql(statement.replace("{t}", theirs))
    skipping = {f"streaming-skip-{kind}-snapshots": "true" for kind in ("delete", "overwrite")}
    table.refresh()
    times = [str(s.timestamp_ms) for s in table.snapshots() if s.operation != "overwrite"]
    for number, time_ms in enumerate([None, *times, "1", str(2**52)]):
        options = {**skipping, **({} if time_ms is None else {"stream-from-timestamp": time_ms})}
        into = tmp_path / f"into{number}"
        iceberg_java.stream(theirs, tmp_path / f"checkpoint{number}", into, **options)
        rows = spark.readStream.options(**options).table(name(table))
        ours = sorted(itertools.chain(*batches(rows, tmp_path / f"ours{number}")))
        assert ours == (stored(spark, into) if list(into.glob("*.parquet")) else [])
        if time_ms is None:
            assert ours == [1, 2, 3, 4, 7]


def test_where_history_has_expired_a_new_query_begins_with_the_rows_there_are(
    spark, table, tmp_path
):
    """Iceberg Java leaves out what snapshots added that are gone."""
    with table.transaction() as transaction:
        transaction.set_properties({"write.delete.mode": "merge-on-read"})
    append(table, 1, 2, 3)
    append(table, 4)
    table.delete("id = 2")
    append(table, 5)
    table.expire_snapshots().retain_last(2).older_than(2**52).commit()
    rows = spark.readStream.option("streaming-max-files-per-micro-batch", "1").table(name(table))
    found = batches(rows, tmp_path / "a")
    assert sorted(found) == [[1, 3], [4], [5]]
    assert found[-1] == [5]


def test_a_branch_is_followed_by_name_and_by_option(spark, table, tmp_path, only_lake):
    append(table, 1, 2)
    spark.sql(f"ALTER TABLE {name(table)} CREATE BRANCH side")
    side = f"{name(table)}.branch_side"
    spark.sql(f"INSERT INTO {side} VALUES (3, 'x')")
    append(table.refresh(), 9)
    followed = spark.readStream.option("streaming-max-files-per-micro-batch", "1").table(side)
    assert batches(followed.where("id > 1"), tmp_path / "a") == [[2], [3]]
    spark.sql(f"INSERT INTO {side} VALUES (4, 'x')")
    loaded = spark.readStream.format("iceberg").option("branch", "side").load(name(table))
    assert batches(loaded, tmp_path / "a") == [[4]]
    assert batches(loaded, tmp_path / "a") == []
    spark.sql(f"ALTER TABLE {name(table)} REPLACE BRANCH side")
    with pytest.raises(PySparkException, match=r"Branch side of .* was rolled back or replaced"):
        batches(loaded, tmp_path / "a")


@pytest.mark.parametrize("first_is_ours", [True, False])
def test_a_checkpoint_of_a_branch_goes_on_where_main_has_what_the_branch_had(
    spark, iceberg_java, other_spark, table, tmp_path, first_is_ours
):
    """Iceberg Java passes over the option and reads main."""
    checkpoint, into = tmp_path / "checkpoint", tmp_path / "into"
    ours, ice = name(table), name(table, "ice")
    append(table, 1)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "side").commit()
    if first_is_ours:
        table.append(pa.table({"id": pa.array([2], pa.int64()), "s": ["x"]}), branch="side")
        other_spark("4.1").stream(ours, checkpoint, into, branch="side")
        table.refresh().manage_snapshots().fast_forward("main", "side").commit()
        append(table.refresh(), 3)
        iceberg_java.sql(f"REFRESH TABLE {ice}")
        iceberg_java.stream(ice, checkpoint, into, branch="side")
    else:
        iceberg_java.stream(ice, checkpoint, into, branch="side")
        append(table.refresh(), 2)
        iceberg_java.sql(f"REFRESH TABLE {ice}")
        iceberg_java.stream(ice, checkpoint, into, branch="side")
        table.refresh().manage_snapshots().fast_forward("side", "main").commit()
        table.refresh().append(
            pa.table({"id": pa.array([3], pa.int64()), "s": ["x"]}), branch="side"
        )
        other_spark("4.1").stream(ours, checkpoint, into, branch="side")
    assert stored(spark, into) == [1, 2, 3]


@pytest.mark.parametrize("minor", ["3.5"])
def test_other_sparks_follow_a_table(other_spark, spark, table, tmp_path, minor):
    checkpoint, into = Path(tmp_path / "checkpoint"), tmp_path / "into"
    for ids in ([1, 2], [3], [4]):
        append(table, *ids)
        other_spark(minor).stream(name(table), checkpoint, into)
    assert stored(spark, into) == [1, 2, 3, 4]
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "side").commit()
    table.refresh().append(pa.table({"id": pa.array([5], pa.int64()), "s": ["x"]}), branch="side")
    other_spark(minor).stream(f"{name(table)}.branch_side", checkpoint, into)
    assert stored(spark, into) == [1, 2, 3, 4, 5]
