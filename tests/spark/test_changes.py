"""The table of changes below a table, beside Iceberg Java's, and over delete files, which its has not."""

from __future__ import annotations

import itertools
from collections import Counter
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.types import LongType
from tests.catalog.random_table import RandomTable, ordered
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.peers.spark_worker import plain

pytestmark = pytest.mark.jvm

NAMESPACE = "changes"
NUMBERS = itertools.count(1)
ORDERED = "ORDER BY _change_ordinal, _change_type, id, k"


@pytest.fixture(scope="module")
def namespace(catalog):
    catalog.create_namespace(NAMESPACE)
    yield NAMESPACE
    catalog.drop_namespace(NAMESPACE)


@pytest.fixture
def name(spark, catalog, namespace):
    name = f"{namespace}.t{next(NUMBERS)}"
    spark.sql(
        f"CREATE TABLE lake.{name} (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k) "
        "TBLPROPERTIES ('format-version'='2')"
    )
    yield name
    catalog.drop_table(tuple(name.split(".")))


def rows(found):
    return [[plain(value) for value in row] for row in found.collect()]


def test_the_changes_of_files_are_those_that_iceberg_java_tells(spark, iceberg_java, catalog, name):
    for statement in (
        "INSERT INTO {t} VALUES (1, 'a'), (2, 'a'), (3, 'b')",
        "INSERT INTO {t} VALUES (4, 'b')",
        "UPDATE {t} SET id = 20 WHERE id = 2",
        "ALTER TABLE {t} RENAME COLUMN k TO kind",
        "DELETE FROM {t} WHERE kind = 'b'",
        "ALTER TABLE {t} RENAME COLUMN kind TO k",
        "ALTER TABLE {t} ADD COLUMN later INT",
        "INSERT OVERWRITE {t} VALUES (5, 'c', 7)",
    ):
        spark.sql(statement.replace("{t}", f"lake.{name}"))
    catalog.load_table(tuple(name.split("."))).rewrite_manifests()
    every = f"SELECT * FROM {{c}}.{name}.changes {ORDERED}"
    columns, theirs = iceberg_java.table(every.format(c="ice"))
    found = spark.sql(every.format(c="lake"))
    assert found.dtypes == columns
    assert rows(found) == theirs
    assert {row[-3] for row in theirs} == {"INSERT", "DELETE"}
    # where a filter or only some columns are asked for, Iceberg Java fails
    only = f"SELECT * FROM lake.{name}.changes WHERE _change_type = 'DELETE' AND k = 'b' {ORDERED}"
    assert rows(spark.sql(only)) == [row for row in theirs if (row[1], row[3]) == ("b", "DELETE")]
    count = f"SELECT count(*), max(_change_ordinal), min(id) FROM lake.{name}.changes"
    assert rows(spark.sql(count)) == [
        [len(theirs), max(r[-2] for r in theirs), min(r[0] for r in theirs)]
    ]
    assert rows(spark.sql(f"SELECT count(*) FROM lake.{name}.changes LIMIT 1")) == [[len(theirs)]]
    snapshots = catalog.load_table(tuple(name.split("."))).snapshots()
    ranged = spark.read.option("start-snapshot-id", snapshots[1].snapshot_id)
    ranged = ranged.option("end-snapshot-id", snapshots[2].snapshot_id)
    assert [
        row["_commit_snapshot_id"] for row in ranged.table(f"lake.{name}.changes").collect()
    ] == [snapshots[2].snapshot_id] * len(
        [row for row in theirs if row[-1] == snapshots[2].snapshot_id]
    )
    timed = spark.read.option("start-timestamp", snapshots[0].timestamp_ms)
    timed = timed.option("end-timestamp", snapshots[1].timestamp_ms).table(f"lake.{name}.changes")
    assert [row["id"] for row in timed.collect()] == [4]


def test_rows_that_position_deletes_removed_are_told_and_no_others(spark, catalog, name):
    place = tuple(name.split("."))
    spark.sql(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    spark.sql(f"INSERT INTO lake.{name} SELECT id, 'a' FROM range(6)")
    spark.sql(f"DELETE FROM lake.{name} WHERE id = 2")
    spark.sql(f"DELETE FROM lake.{name} WHERE id IN (1, 4)")
    spark.sql(f"INSERT INTO lake.{name} VALUES (9, 'b')")
    spark.sql(f"DELETE FROM lake.{name} WHERE k = 'a'")
    assert catalog.load_table(place).inspect.all_delete_files().num_rows >= 2
    found = rows(
        spark.sql(
            f"SELECT id, _change_type, _change_ordinal FROM lake.{name}.changes ORDER BY 3, 1"
        )
    )
    assert found == [
        *([i, "INSERT", 0] for i in range(6)),
        [2, "DELETE", 1],
        *([i, "DELETE", 2] for i in (1, 4)),
        [9, "INSERT", 3],
        *([i, "DELETE", 4] for i in (0, 3, 5)),
    ]


def delete_keys(table, keys, spec_id=None, then=()):
    """One commit with equality deletes, and with rows beside them."""
    writer = EqualityDeleteWriter(
        table.io, table.metadata, f"keys{next(NUMBERS)}", keys.column_names, spec_id=spec_id
    )
    for batch in keys.to_batches():
        writer.write(batch)
    delta = RowDelta(table.io)
    for file in writer.close():
        delta.add_deletes(file)
    for file in then:
        delta.add_rows(file)
    table.commit(delta)


def told(spark, name, *columns):
    """What each commit did, as the table of changes has it."""
    found = spark.sql(f"SELECT * FROM lake.{name}.changes").toArrow().to_pylist()
    change = ("_change_ordinal", "_change_type")
    return sorted(([row[c] for c in (*change, *columns)] for row in found), key=repr)


def test_rows_that_equality_deletes_removed_are_told_once_with_their_values(spark, catalog, name):
    table = catalog.load_table(tuple(name.split(".")))
    rows = {"id": pa.array([1, 2, 3, 1, 2], pa.int64()), "k": ["a", "a", "a", "b", None]}
    table.append(pa.table(rows))
    # in one partition, and beside rows of the same commit, which it does not reach
    upsert = pa.table({"id": pa.array([1, 4], pa.int64()), "k": ["a", "a"]})
    keys = pa.table({"id": pa.array([1, 9], pa.int64()), "k": ["a", "a"]})
    delete_keys(table, keys, then=write_data(table.io, table.metadata, upsert))
    with table.update_schema() as update:
        update.rename_column("id", "number")
        update.add_column("later", LongType())
    # what was deleted once is not told again: by the same key, by position, by another column
    delete_keys(table, keys.select(["k"]).append_column("number", keys["id"]))
    spark.sql(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')")
    spark.sql(f"DELETE FROM lake.{name} WHERE number = 2 AND k = 'a'")
    table.refresh()
    delete_keys(table, pa.table({"k": ["a"]}))
    # a whole file goes that has nothing left, and one that has
    spark.sql(f"DELETE FROM lake.{name} WHERE k = 'a'")
    spark.sql(f"DELETE FROM lake.{name} WHERE k IS NULL")
    assert told(spark, name, "number", "k", "later") == sorted(
        [
            *(
                [0, "INSERT", i, k, None]
                for i, k in zip(rows["id"].to_pylist(), rows["k"], strict=True)
            ),
            [1, "DELETE", 1, "a", None],
            *([1, "INSERT", i, "a", None] for i in (1, 4)),
            [2, "DELETE", 1, "a", None],
            [3, "DELETE", 2, "a", None],
            *([4, "DELETE", i, "a", None] for i in (3, 4)),
            [6, "DELETE", 2, None, None],
        ],
        key=repr,
    )


@pytest.mark.seeds(6, gate=2)
def test_the_changes_of_random_tables_are_the_differences_of_their_rows(
    spark, catalog, namespace, seed
):
    """Of rows in memory, commit by commit; where files are written anew, rows come in pairs besides."""
    place = (namespace, f"random{seed}")
    made = RandomTable(
        Random(seed), catalog, place, ("parquet", "orc", "avro")[(seed + seed // 3) % 3]
    )
    states = {None: []}
    while len(states) < 10:
        made.change()
        states.setdefault(made.table.metadata.current_snapshot_id, list(made.rows))
    columns = {f.field_id: f.name for f in made.table.schema().fields}
    had = [Counter(text(row, columns) for row in rows) for rows in states.values()]
    found = spark.sql(f"SELECT * FROM lake.{'.'.join(place)}.changes").toArrow().to_pylist()
    changes = {snapshot_id: (Counter(), Counter()) for snapshot_id in states if snapshot_id}
    for row in found:
        inserted = row["_change_type"] == "INSERT"
        names = {name: name for name in columns.values()}
        changes[row["_commit_snapshot_id"]][inserted][text(row, names)] += 1
    for snapshot_id, (before, after) in zip(changes, pairwise(had), strict=True):
        deleted, inserted = changes[snapshot_id]
        assert (inserted - deleted, deleted - inserted) == (after - before, before - after)
        if "deleted-data-files" not in made.table.snapshot_by_id(snapshot_id).summary:
            assert not inserted & deleted
    catalog.drop_table(place)


def text(row, columns):
    """A row as what two of them are compared by; nested values of any catalog alike."""
    (plain_row,) = ordered([{name: row.get(key) for key, name in columns.items()}])
    return repr(plain_row)


def test_what_has_no_answer_is_refused_with_a_way_out(spark, name):
    for statement, said in (
        (f"SELECT * FROM lake.{name}.changes VERSION AS OF 1", "cannot|Cannot"),
        (f"INSERT INTO lake.{name}.changes SELECT 1, 'a', 'INSERT', 0, 0L", "cannot be written"),
        (f"DELETE FROM lake.{name}.changes WHERE id = 1", "cannot be changed"),
    ):
        with pytest.raises(PySparkException, match=said):
            spark.sql(statement).collect()
    chosen = spark.read.option("branch", "main").table(f"lake.{name}.changes")
    with pytest.raises(PySparkException, match="not of one state"):
        chosen.collect()
