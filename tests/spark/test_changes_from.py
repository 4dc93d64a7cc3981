"""CHANGES FROM, which Spark has since 4.2: ranges of commits, updates, and what is refused."""

from __future__ import annotations

import itertools
import sys
from random import Random

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.write.data_writer import write_data
from icecomb.spark.conf import SESSION_CATALOG_CLASS
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.rings import sampled

pytestmark = pytest.mark.jvm

NAMESPACE = "changes_from"
NUMBERS = itertools.count(1)
OWN = "_change_type, _commit_version, _commit_timestamp"


@pytest.fixture
def name(spark, catalog, namespace):
    name = f"lake.{namespace}.t{next(NUMBERS)}"
    spark.sql(
        f"CREATE TABLE {name} (id BIGINT NOT NULL, k STRING) USING iceberg PARTITIONED BY (k) "
        "TBLPROPERTIES ('write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')"
    )
    yield name
    catalog.drop_table(tuple(name.split(".")[1:]))


def commits(catalog, name, *statements, spark):
    """The snapshots after these statements, the oldest first."""
    for statement in statements:
        spark.sql(statement.replace("{t}", name))
    return catalog.load_table(tuple(name.split(".")[1:])).snapshots()


def test_a_range_has_the_commits_between_its_ends_and_the_ends_that_are_inclusive(
    spark, catalog, name
):
    snapshots = commits(
        catalog,
        name,
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'b')",
        "INSERT INTO {t} VALUES (4, 'b')",
        "DELETE FROM {t} WHERE id = 2",
        "DELETE FROM {t} WHERE k = 'b'",
        spark=spark,
    )
    s1, s2, s3, s4 = (s.snapshot_id for s in snapshots)
    by_commit = {
        s1: [[1, "a", "insert"], [2, "a", "insert"], [3, "b", "insert"]],
        s2: [[4, "b", "insert"]],
        s3: [[2, "a", "delete"]],
        s4: [[3, "b", "delete"], [4, "b", "delete"]],
    }
    times = {s.snapshot_id: s.timestamp_ms for s in snapshots}

    def check(changes, expected):
        found = spark.sql(
            f"SELECT id, k, {OWN}, unix_millis(_commit_timestamp) AS ms FROM {name} {changes}"
        ).collect()
        told = {}
        for row in found:
            assert row["ms"] == times[row["_commit_version"]]
            told.setdefault(row["_commit_version"], []).append(list(row[:3]))
        assert {version: sorted(rows) for version, rows in told.items()} == {
            version: by_commit[version] for version in expected
        }, changes

    spark.sql(f"ALTER TABLE {name} CREATE TAG two AS OF VERSION {s2}")
    check(f"CHANGES FROM VERSION {s1}", [s1, s2, s3, s4])
    check(f"CHANGES FROM VERSION {s2} TO VERSION {s3}", [s2, s3])
    check(f"CHANGES FROM VERSION {s2} EXCLUSIVE TO VERSION {s3}", [s3])
    check(f"CHANGES FROM VERSION {s2} TO VERSION {s4} EXCLUSIVE", [s2, s3])
    check(f"CHANGES FROM VERSION {s2} EXCLUSIVE TO VERSION {s3} EXCLUSIVE", [])
    check(f"CHANGES FROM VERSION {s4} EXCLUSIVE", [])
    check("CHANGES FROM VERSION 'two' TO VERSION 'main'", [s2, s3, s4])

    def at(snapshot_id, later_ms=0):
        # Spark takes a constant that it can cast
        [[text]] = spark.sql(
            f"SELECT string(timestamp_millis({times[snapshot_id] + later_ms}))"
        ).collect()
        return f"TIMESTAMP '{text}'"

    check(f"CHANGES FROM {at(s2)} TO {at(s3)}", [s2, s3])
    check(f"CHANGES FROM {at(s2)} EXCLUSIVE TO {at(s4)} EXCLUSIVE", [s3])
    check(f"CHANGES FROM {at(s1, -1)}", [s1, s2, s3, s4])
    check(f"CHANGES FROM {at(s4, 1000)}", [])
    read = spark.read.option("startingVersion", str(s3)).changes(name)
    assert {r["_commit_version"] for r in read.collect()} == {s3, s4}
    assert [f.name for f in read.schema] == ["id", "k", *OWN.split(", ")]
    only = (
        f"SELECT id FROM {name} CHANGES FROM VERSION {s1} WHERE _change_type = 'delete' AND k = 'a'"
    )
    assert [row[0] for row in spark.sql(only).collect()] == [2]
    count = (
        f"SELECT count(*), count(DISTINCT _commit_version) FROM {name} CHANGES FROM VERSION {s1}"
    )
    assert [list(row) for row in spark.sql(count).collect()] == [[7, 4]]


def test_equality_deletes_and_branches_are_told(spark, catalog, name):
    table = catalog.load_table(tuple(name.split(".")[1:]))
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "k": ["a", "b"]}, SCHEMA))
    writer = EqualityDeleteWriter(table.io, table.metadata, "keys", ["id", "k"])
    writer.write(pa.record_batch({"id": pa.array([2], pa.int64()), "k": ["b"]}))
    delta = RowDelta(table.io)
    for file in writer.close():
        delta.add_deletes(file)
    table.commit(delta)
    first = table.refresh().snapshots()[0].snapshot_id
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH side AS OF VERSION {first}")
    spark.sql(f"INSERT INTO {name}.branch_side VALUES (9, 'c')")

    def told(table_name):
        query = (
            f"SELECT id, _change_type FROM {table_name} CHANGES FROM VERSION {first} ORDER BY ALL"
        )
        return [list(row) for row in spark.sql(query).collect()]

    assert told(name) == [[1, "insert"], [2, "delete"], [2, "insert"]]
    assert told(f"{name}.branch_side") == [[1, "insert"], [2, "insert"], [9, "insert"]]


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("k", pa.string())])


def test_a_deletion_and_an_insertion_of_an_identifier_are_an_update(spark, catalog, name):
    spark.sql(f"ALTER TABLE {name} SET IDENTIFIER FIELDS id")
    snapshots = commits(
        catalog,
        name,
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'a')",
        "DELETE FROM {t} WHERE id = 1",
        spark=spark,
    )
    table = catalog.load_table(tuple(name.split(".")[1:]))
    writer = EqualityDeleteWriter(table.io, table.metadata, "keys", ["id", "k"])
    writer.write(pa.record_batch({"id": pa.array([2], pa.int64()), "k": ["a"]}))
    delta = RowDelta(table.io)
    for file in writer.close():
        delta.add_deletes(file)
    rows = pa.table({"id": pa.array([2, 3], pa.int64()), "k": ["b", "b"]}, SCHEMA)
    for file in write_data(table.io, table.metadata, rows):
        delta.add_rows(file)
    table.commit(delta)
    found = spark.sql(
        f"SELECT id, k, _change_type FROM {name} CHANGES FROM VERSION {snapshots[0].snapshot_id} "
        "WITH (computeUpdates = 'true') ORDER BY ALL"
    )
    assert [list(row) for row in found.collect()] == [
        [1, "a", "delete"],
        [1, "a", "insert"],
        [2, "a", "insert"],
        [2, "a", "update_preimage"],
        [2, "b", "update_postimage"],
        [3, "b", "insert"],
    ]


def test_what_commits_do_not_say_is_refused_with_a_way_out(spark, catalog, name):
    (first,) = commits(catalog, name, "INSERT INTO {t} VALUES (1, 'a'), (2, 'a')", spark=spark)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.update.mode'='copy-on-write')")
    spark.sql(f"UPDATE {name} SET id = 3 WHERE id = 2")
    changes = f"SELECT id, _change_type FROM {name} CHANGES FROM VERSION {first.snapshot_id}"
    only = f"{changes} TO VERSION {first.snapshot_id}"
    raw = spark.sql(f"{changes} WITH (deduplicationMode = 'none') ORDER BY ALL")
    assert [list(row) for row in raw.collect()] == [
        [1, "delete"], [1, "insert"], [1, "insert"],
        [2, "delete"], [2, "insert"], [3, "insert"],
    ]  # fmt: skip
    for statement, said in (
        (changes, "rewrote rows.*deduplicationMode"),
        (f"{changes} WITH (computeUpdates = 'true', deduplicationMode = 'none')", "rewrote rows"),
        (f"{changes} WITH (deduplicationMode = 'netChanges')", "net_changes"),
        (
            f"{changes} TO VERSION {first.snapshot_id} WITH (computeUpdates = 'true')",
            "no identifier fields.*SET IDENTIFIER FIELDS",
        ),
        (f"SELECT * FROM {name} CHANGES FROM VERSION 5", "no snapshot, branch or tag '5'"),
        (f"SELECT * FROM {name} CHANGES FROM VERSION 'main' TO VERSION {first.snapshot_id}", "not an ancestor"),
        (f"SELECT * FROM {name}.snapshots CHANGES FROM VERSION {first.snapshot_id}", "not about"),
        (f"SELECT * FROM {name}.tag_x CHANGES FROM VERSION {first.snapshot_id}", "no snapshot, branch or tag"),
        (f"SELECT * FROM {name}.nothing CHANGES FROM VERSION 1", "nothing"),
        (f"{only} WITH (`start-snapshot-id` = '1')", "the option start-snapshot-id"),
        (f"{only} WITH (`End-Timestamp` = '1')", "the option end-timestamp"),
        (f"{only} WITH (branch = 'main')", "the option branch"),
    ):  # fmt: skip
        with pytest.raises(PySparkException, match=f"(?s){said}"):
            spark.sql(statement).collect()


@pytest.mark.full("one of many kinds of changes")
@pytest.mark.sparks("4.3", "4.2")
def test_rows_that_have_ids_are_told_by_them(sql_on, spark, catalog, name, minor):
    """A copy of a row is no change of it, and an update is one of a row id, also elsewhere."""
    spark.sql(
        f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version'='3', "
        "'write.update.mode'='copy-on-write')"
    )
    first, *_ = commits(
        catalog,
        name,
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'a')",
        "UPDATE {t} SET id = 12 WHERE id = 2",
        "UPDATE {t} SET k = 'b' WHERE id = 3",
        "DELETE FROM {t} WHERE id = 1",
        spark=spark,
    )
    run = sql_on(minor)
    changes = (
        f"SELECT id, k, _change_type FROM {name} CHANGES FROM VERSION {first.snapshot_id} EXCLUSIVE"
    )
    order = "ORDER BY _commit_timestamp, id, _change_type DESC"
    assert run(f"{changes} {order}") == [
        [2, "a", "delete"], [12, "a", "insert"],
        [3, "b", "insert"], [3, "a", "delete"],
        [1, "a", "delete"],
    ]  # fmt: skip
    assert run(f"{changes} WITH (computeUpdates = 'true') {order}") == [
        [2, "a", "update_preimage"], [12, "a", "update_postimage"],
        [3, "a", "update_preimage"], [3, "b", "update_postimage"],
        [1, "a", "delete"],
    ]  # fmt: skip
    told = run(f"{changes} WITH (deduplicationMode = 'none') {order}")
    assert len(told) > 5
    only = changes.replace("id, k, _change_type", "*")
    assert len(run(f"{only} WITH (computeUpdates = 'true')")[0]) == 5
    spark.sql(f"ALTER TABLE {name} SET IDENTIFIER FIELDS id")
    assert run(f"{changes} WITH (computeUpdates = 'true') {order}") == [
        [2, "a", "delete"], [12, "a", "insert"],
        [3, "a", "update_preimage"], [3, "b", "update_postimage"],
        [1, "a", "delete"],
    ]  # fmt: skip


def test_a_stream_of_changes_is_refused(spark, catalog, name, tmp_path):
    (first,) = commits(catalog, name, "INSERT INTO {t} VALUES (1, 'a')", spark=spark)
    stream = spark.readStream.option("startingVersion", str(first.snapshot_id)).changes(name)
    with pytest.raises(PySparkException, match="not the changes of one"):
        stream.writeStream.format("noop").option(
            "checkpointLocation", str(tmp_path)
        ).start().processAllAvailable()


@pytest.mark.full("single changes are in the gate")
@pytest.mark.sparks("4.3", "4.2")
@pytest.mark.parametrize("mode", sampled(["copy-on-write", "merge-on-read"], keep=1))
def test_the_changes_are_those_of_the_table_of_changes_also_on_another_spark(
    sql_on, spark, catalog, name, minor, mode
):
    """Of random statements, over rows that are there more than once."""
    random = Random(7)
    modes = ", ".join(f"'write.{kind}.mode'='{mode}'" for kind in ("delete", "update"))
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({modes})")
    for step in range(4):
        row = f"{random.randrange(5)}, '{random.choice('ab')}'"
        spark.sql(f"INSERT INTO {name} VALUES ({row}), ({row}), (8, 'c')")
        spark.sql(
            f"UPDATE {name} SET id = {step} WHERE id = {random.randrange(5)}"
            if step % 2
            else f"DELETE FROM {name} WHERE id = {random.randrange(5)}"
        )
    table = name.removeprefix("lake.")
    snapshots = catalog.load_table(tuple(table.split("."))).snapshots()
    run, seen = sql_on(minor), set()
    for first in range(0, len(snapshots), 3):
        last = random.randrange(first, len(snapshots))
        ids = {snapshot.snapshot_id for snapshot in snapshots[first : last + 1]}
        told = run(
            f"SELECT id, k, _change_type, _commit_version FROM {name} CHANGES FROM VERSION "
            f"{snapshots[first].snapshot_id} TO VERSION {snapshots[last].snapshot_id} "
            "WITH (deduplicationMode = 'none') ORDER BY ALL"
        )
        every = run(
            "SELECT id, k, lower(_change_type), _commit_snapshot_id "
            f"FROM lake.{table}.changes ORDER BY ALL"
        )
        assert told == [row for row in every if row[3] in ids]
        seen |= {row[2] for row in told}
    assert seen == {"insert", "delete"}


def test_the_session_catalog_has_them_too(spark, catalog, name):
    (first,) = commits(catalog, name, "INSERT INTO {t} VALUES (1, 'a')", spark=spark)
    session = spark.newSession()
    prefix = "spark.sql.catalog.spark_catalog"
    session.conf.set(prefix, SESSION_CATALOG_CLASS)
    session.conf.set(f"{prefix}.python", sys.executable)
    own = name.replace("lake.", "spark_catalog.")
    changes = f"CHANGES FROM VERSION {first.snapshot_id}"
    found = session.sql(f"SELECT id, k, _change_type FROM {own} {changes}")
    assert [list(row) for row in found.collect()] == [[1, "a", "insert"]]
    session.sql(f"CREATE TABLE {own}_hive (id INT) USING parquet")
    try:
        with pytest.raises(PySparkException, match=r"(?i)iceberg"):
            session.sql(f"SELECT * FROM {own}_hive {changes}").collect()
    finally:
        session.sql(f"DROP TABLE {own}_hive")
