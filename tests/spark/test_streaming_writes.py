"""Streaming queries that write to our tables: every batch once, whoever dies, retries or expires."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icecomb.format.spec.schema import Schema
from icecomb.format.spec.types import IntegerType, LongType, NestedField, StringType
from tests.peers.dead_writers import break_locks
from tests.peers.spark_process import SMALL
from tests.spark.second_reader import READERS, reader

NAMESPACE = "stream_sinks"
NUMBERS = itertools.count(1)
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))
COLUMNS = "id long, s string"
QUERY, EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"


@pytest.fixture
def table(catalog, namespace):
    table = catalog.create_table((namespace, f"t{next(NUMBERS)}"), SCHEMA)
    yield table
    catalog.drop_table(table.identifier)


@pytest.fixture
def strict(catalog, namespace):
    """A table with a column that must have values, and more than queries give."""
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "s", StringType()),
        NestedField(3, "n", IntegerType()),
        NestedField(4, "extra", StringType()),
    )
    table = catalog.create_table((namespace, f"t{next(NUMBERS)}"), schema)
    yield table
    catalog.drop_table(table.identifier)


@pytest.fixture
def source(tmp_path):
    """A folder of JSON files, each of which is a batch."""
    return Source(tmp_path)


class Source:
    def __init__(self, folder):
        self.folder, self.checkpoint = folder / "source", folder / "checkpoint"
        self.folder.mkdir()
        self._numbers = itertools.count(1)
        self._time = 1_600_000_000

    def add(self, *ids):
        """One file; batches take them in the order of their times."""
        path = self.folder / f"{next(self._numbers):05d}.json"
        hidden = path.with_name(f".{path.name}")
        hidden.write_text("".join(json.dumps({"id": i, "s": f"s{i}"}) + "\n" for i in ids))
        self._time += 10
        os.utime(hidden, (self._time, self._time))
        hidden.rename(path)

    def rows(self, spark, columns=COLUMNS):
        reader = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1)
        return reader.json(str(self.folder))

    def discard_commits(self, *numbers):
        """As if the driver died between the commit and the checkpoint."""
        for number in numbers:
            (self.checkpoint / "commits" / str(number)).unlink()
            (self.checkpoint / "commits" / f".{number}.crc").unlink(missing_ok=True)


def run(rows, into, checkpoint, mode="append", **options):
    """Ends with what there is."""
    writer = rows.writeStream.outputMode(mode).options(**options)
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = into(writer) if callable(into) else writer.toTable(into)
    try:
        assert query.awaitTermination(120)
    finally:
        query.stop()


@pytest.fixture(params=READERS)
def other(request):
    """Answers a query as another implementation does."""
    return reader(request)


@pytest.fixture(params=READERS)
def compact(request, catalog):
    """Puts the files of a table together, in `full` also as another implementation does."""
    if request.param != "Iceberg Java":
        return lambda table: catalog.load_table(table).maintenance.rewrite_data_files(
            options={"rewrite-all": "true"}
        )
    java = request.getfixturevalue("iceberg_java")
    call = (
        "CALL ice.system.rewrite_data_files(table => '{}', options => map('rewrite-all', 'true'))"
    )
    return lambda table: java.sql(call.format(table))


def partition(spark, table, *fields):
    for field in fields:
        spark.sql(f"ALTER TABLE {name(table)} ADD PARTITION FIELD {field}")


def name(table, catalog="lake"):
    return ".".join((catalog, *table.identifier))


def ids(table, **options):
    found = table.refresh().scan(selected_fields=("id",), **options)
    return sorted(found.to_arrow()["id"].to_pylist())


def epochs(table):
    table.refresh()
    return [s.summary.get(EPOCH) for s in table.snapshots()]


def files(table):
    """All data files in the table's folder."""
    return {str(p) for p in Path(table.location().removeprefix("file:")).rglob("*.parquet")}


def test_batches_are_appended_by_name_by_format_and_to_a_branch(
    spark, catalog, other, table, source, tmp_path, only_lake
):
    source.add(1, 2)
    source.add(3)
    given = {"snapshot-property.team": "blue"}
    run(source.rows(spark), name(table), source.checkpoint, **given)
    assert epochs(table) == ["0", "1"]
    last = table.current_snapshot().summary
    assert last["team"] == "blue"
    assert last["engine-name"] == "spark"
    metadata = json.loads((source.checkpoint / "metadata").read_text())
    assert last[QUERY] == metadata["id"]
    run(
        source.rows(spark),
        lambda writer: writer.format("iceberg").option("path", name(table)).start(),
        tmp_path / "other",
    )
    assert ids(table) == [1, 1, 2, 2, 3, 3]
    source.add(4)
    spark.sql(f"ALTER TABLE {name(table)} CREATE BRANCH side")
    run(source.rows(spark), f"{name(table)}.branch_side", source.checkpoint)
    run(source.rows(spark), name(table), source.checkpoint, branch="side")
    scan = table.refresh().scan(selected_fields=("id",)).use_ref("side")
    assert sorted(scan.to_arrow()["id"].to_pylist()) == [1, 1, 2, 2, 3, 3, 4]
    assert ids(table) == [1, 1, 2, 2, 3, 3]
    found = other(f"SELECT id, s FROM {name(table, 'ice')} ORDER BY id")
    assert found == [[i, f"s{i}"] for i in (1, 1, 2, 2, 3, 3)]


def test_a_table_that_is_not_there_is_made(spark, catalog, namespace, source, only_lake):
    source.add(1, 2)
    made = f"lake.{namespace}.made{next(NUMBERS)}"
    run(
        source.rows(spark).selectExpr("id", "s", "id % 2 AS part"),
        lambda writer: writer.format("iceberg").partitionBy("part").toTable(made),
        source.checkpoint,
    )
    try:
        table = catalog.load_table(tuple(made.split(".")[1:]))
        assert ids(table) == [1, 2]
        assert [field.name for field in table.metadata.spec().fields] == ["part"]
    finally:
        spark.sql(f"DROP TABLE {made}")


@pytest.mark.full("batches are appended in the gate")
def test_complete_mode_replaces_all_rows_whatever_others_added(spark, table, source):
    table.append(pa.table({"id": pa.array([77], pa.int64()), "s": ["x"]}))
    for batch in ([1, 2, 2], [2]):
        source.add(*batch)
        counted = source.rows(spark).groupBy("id").count()
        result = counted.selectExpr("id", "string(count) AS s")
        run(result, name(table), source.checkpoint, "complete")
        table.refresh().append(pa.table({"id": pa.array([78], pa.int64()), "s": ["x"]}))
        source.discard_commits(len(epochs(table)) // 2 - 1)
    # the batch is run again and skipped: what came after it stays
    run(result, name(table), source.checkpoint, "complete")
    found = table.refresh().scan().to_arrow().to_pylist()
    assert sorted((row["id"], row["s"]) for row in found) == [(1, "1"), (2, "3"), (78, "x")]
    assert epochs(table) == [None, "0", None, "1", None]


def test_update_mode_is_refused(spark, table, source):
    source.add(1)
    counted = source.rows(spark).groupBy("id").count().selectExpr("id", "string(count) AS s")
    with pytest.raises(PySparkException, match="does not support Update mode"):
        run(counted, name(table), source.checkpoint, "update")
    assert ids(table) == []


def test_a_batch_whose_driver_died_after_its_commit_is_skipped_and_its_files_go(
    spark, compact, table, source
):
    source.add(1)
    source.add(2)
    run(source.rows(spark), name(table), source.checkpoint)
    source.discard_commits(1)
    # others may commit and compact in between
    table.refresh().append(pa.table({"id": pa.array([9], pa.int64()), "s": ["x"]}))
    compact(".".join(table.identifier))
    there = files(table)
    run(source.rows(spark), name(table), source.checkpoint)
    assert ids(table) == [1, 2, 9]
    assert files(table) == there
    source.add(3)
    run(source.rows(spark), name(table), source.checkpoint)
    assert ids(table) == [1, 2, 3, 9]


def test_a_batch_that_failed_is_run_again(spark, table, source):
    source.add(1)
    source.add(2)
    broken = source.rows(spark).selectExpr(
        "CASE WHEN id = 2 THEN raise_error('no') ELSE id END AS id", "s"
    )
    with pytest.raises(PySparkException):
        run(broken.selectExpr("CAST(id AS long) AS id", "s"), name(table), source.checkpoint)
    assert ids(table) == [1]
    run(source.rows(spark), name(table), source.checkpoint)
    assert ids(table) == [1, 2]
    assert len(files(table)) == 2


def test_where_the_commit_of_a_batch_may_have_expired_it_is_not_committed_again(
    spark, catalog, table, source, tmp_path
):
    def expire():
        table.refresh().append(pa.table({"id": pa.array([9], pa.int64()), "s": ["x"]}))
        table.expire_snapshots().retain_last(1).older_than(2**52).commit()

    source.add(1)
    run(source.rows(spark), name(table), source.checkpoint)
    expire()
    # a batch that is planned after that is another one
    source.add(2)
    run(source.rows(spark), name(table), source.checkpoint)
    assert ids(table) == [1, 2, 9]
    expire()
    # so is one of another query
    run(source.rows(spark), name(table), tmp_path / "other")
    assert ids(table) == [1, 1, 2, 2, 9, 9]
    expire()
    there = files(table)
    shutil.copytree(source.checkpoint, tmp_path / "kept")
    source.discard_commits(1)
    with pytest.raises(PySparkException, match=r"batch 1 of the streaming query .* expired"):
        run(source.rows(spark), name(table), source.checkpoint)
    assert ids(table) == [1, 1, 2, 2, 9, 9, 9]
    assert files(table) == there
    # both ways that the hint names
    shutil.copy(source.checkpoint / "commits" / "0", source.checkpoint / "commits" / "1")
    source.add(3)
    run(source.rows(spark), name(table), source.checkpoint)
    assert ids(table) == [1, 1, 2, 2, 3, 9, 9, 9]
    expire()
    source.discard_commits(2)
    run(source.rows(spark), name(table), source.checkpoint, **{"commit-epoch": "2"})
    assert ids(table) == [1, 1, 2, 2, 3, 3, 9, 9, 9, 9]


@pytest.mark.parametrize("first_is_ours", [True, False])
def test_checkpoints_of_iceberg_javas_sink_go_on_with_ours_and_ours_with_it(
    iceberg_java, other_spark, table, source, first_is_ours
):
    ours, theirs = (other_spark("4.1"), name(table)), (iceberg_java, name(table, "ice"))
    numbers = itertools.count()
    for engine, target in ([ours, theirs] if first_is_ours else [theirs, ours]) * 2:
        epoch = next(numbers)
        source.add(epoch)
        engine.sink(target, COLUMNS, source.folder, source.checkpoint)
        # the driver dies, and the other one takes the batch over
        source.discard_commits(epoch)
    last = ours if first_is_ours else theirs
    last[0].sink(last[1], COLUMNS, source.folder, source.checkpoint)
    assert ids(table) == [0, 1, 2, 3]
    assert epochs(table) == ["0", "1", "2", "3"]


def test_columns_are_found_by_name_and_what_does_not_fit_is_refused(spark, strict, source):
    table = strict
    partition(spark, table, "bucket(4, n)")
    rows = source.rows(spark, COLUMNS + ", n int")
    source.add(1, 2)
    for columns, problem in (
        (("s", "n"), "does not give column id"),
        (("id", "s"), "does not give column n"),
        (("id", "n", "s AS t"), "a column t that it does not have"),
        (("id", "n", "ID"), "a column ID twice"),
        (("id", "CAST(n AS long) AS n"), "column n is INT, the query gives BIGINT"),
    ):
        with pytest.raises(PySparkException, match=problem):
            run(rows.selectExpr(*columns), name(table), source.checkpoint)
    run(rows.selectExpr("n", "s", "ID"), name(table), source.checkpoint)
    found = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": i, "s": f"s{i}", "n": None, "extra": None} for i in (1, 2)]
    # while a query goes on the table may change
    spark.sql(f"ALTER TABLE {name(table)} ADD COLUMN later int")
    (source.folder / "00099.json").write_text('{"s": "null"}\n')
    with pytest.raises(PySparkException, match="null for column id"):
        run(rows, name(table), source.checkpoint)


@pytest.mark.full("both ways meet partitions, and a format, elsewhere")
def test_partitioned_tables_are_written_by_format_too(spark, catalog, table, source, only_lake):
    partition(spark, table, "bucket(4, id)", "truncate(1, s)")
    source.add(*range(50))
    run(
        source.rows(spark),
        lambda writer: writer.format("iceberg").option("fanout-enabled", "true").start(name(table)),
        source.checkpoint,
    )
    source.add(*range(50, 60))
    run(
        source.rows(spark),
        lambda writer: writer.format("iceberg").start(name(table)),
        source.checkpoint,
    )
    assert ids(table) == list(range(60))
    assert ids(table, row_filter="id = 7 AND s = 's7'") == [7]


def test_write_audit_publish_of_a_query(spark, table, source):
    with table.transaction() as transaction:
        transaction.set_properties({"write.wap.enabled": "true"})
    source.add(1)
    spark.conf.set("spark.wap.branch", "audit")
    try:
        run(source.rows(spark), name(table), source.checkpoint)
        source.discard_commits(0)
        run(source.rows(spark), name(table), source.checkpoint)
    finally:
        spark.conf.unset("spark.wap.branch")
    assert ids(table) == []
    scan = table.refresh().scan(selected_fields=("id",)).use_ref("audit")
    assert scan.to_arrow()["id"].to_pylist() == [1]
    spark.conf.set("spark.wap.id", "one")
    try:
        with pytest.raises(PySparkException, match="cannot all be staged as 'one'"):
            run(source.rows(spark), name(table), source.checkpoint.with_name("other"))
    finally:
        spark.conf.unset("spark.wap.id")


@pytest.mark.parametrize("minor", ["3.5", "4.1"])
def test_other_sparks_write_batches(other_spark, spark, table, source, minor):
    partition(spark, table, "bucket(2, id)")
    other = other_spark(minor)
    for number in range(3):
        source.add(number)
        other.sink(name(table), COLUMNS, source.folder, source.checkpoint)
        source.discard_commits(number)
    other.sink(name(table), COLUMNS, source.folder, source.checkpoint)
    assert ids(table) == [0, 1, 2]
    assert epochs(table) == ["0", "1", "2"]


WRITER = """
import json, sys
from icecomb.spark import session

conf, source, columns, table, checkpoint = sys.argv[1:]
spark = session("lake", **json.loads(conf))
rows = spark.readStream.schema(columns).option("maxFilesPerTrigger", 1).json(source)
rows.writeStream.option("checkpointLocation", checkpoint).toTable(table).awaitTermination()
"""


@pytest.mark.full("two more Sparks, which are killed")
@pytest.mark.seeds(1)
@pytest.mark.parametrize("in_commit", [False, True])
def test_each_batch_is_there_once_when_its_driver_is_killed(
    spark, metastore, catalog, table, source, tmp_path, seed, in_commit
):
    """Another process writes and is killed somewhere; this one goes on with its checkpoint."""
    chance, ledger = random.Random(seed), itertools.count()
    client = {f"spark.hadoop.{key}": value for key, value in metastore.client_settings.items()}
    place = {"uri": metastore.uri, "warehouse": str(metastore.warehouse)}
    conf = json.dumps({**place, **SMALL, **client})
    for _ in range(3):
        source.add(*(next(ledger) for _ in range(chance.randrange(1, 4))))
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-c", WRITER, conf, str(source.folder), COLUMNS, name(table),
             str(source.checkpoint)],
            env={**os.environ, "HADOOP_TOKEN_FILE_LOCATION": str(metastore.token_file)},
            stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        wanted = 1 + chance.randrange(3)
        while len(list((source.checkpoint / "commits").glob("[0-9]*"))) < wanted:
            assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
            time.sleep(0.02)
        for _ in range(10):
            source.add(*(next(ledger) for _ in range(chance.randrange(1, 4))))
        if in_commit:
            while not catalog.client.locks(*table.identifier):
                assert process.poll() is None, (tmp_path / "log").read_text()[-3000:]
        else:
            # somewhere in a batch, or between two
            time.sleep(chance.random())
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    break_locks(catalog, table, until_s=1.0)
    for _ in range(2):
        source.add(next(ledger))
        run(source.rows(spark), name(table), source.checkpoint)
    assert ids(table) == list(range(next(ledger)))
