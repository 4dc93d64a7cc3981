"""The table of changes below a table, beside Iceberg Java's, and over delete files, which its has not."""

from __future__ import annotations

import itertools
from collections import Counter
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import Row

from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Operation
from icecomb.format.spec.types import LongType, NestedField, StructType
from tests.catalog.random_table import RandomTable, ordered
from tests.format.rows.equality_delete_writer import EqualityDeleteWriter
from tests.peers.spark_worker import plain

pytestmark = pytest.mark.jvm

NAMESPACE = "changes"
NUMBERS = itertools.count(1)
ORDERED = "ORDER BY _change_ordinal, _change_type, id, k"


@pytest.fixture
def name(spark, catalog, namespace):
    name = f"{namespace}.t{next(NUMBERS)}"
    spark.sql(
        f"CREATE TABLE lake.{name} (id BIGINT, k STRING) USING iceberg PARTITIONED BY (k) "
        "TBLPROPERTIES ('format-version'='2')"
    )
    yield name
    catalog.drop_table(tuple(name.split(".")))


@pytest.fixture
def fresh(catalog, namespace):
    """Gives names of tables, which are dropped."""
    given = []

    def name():
        given.append(f"{namespace}.t{next(NUMBERS)}")
        return given[-1]

    yield name
    for each in given:
        catalog.drop_table(each)


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


@pytest.mark.seeds(6, gate=1)
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


def test_a_view_of_changes_brings_no_setting_into_its_columns(spark, catalog, fresh):
    """Spark puts settings and the environment, secrets among them, into SQL for `${...}`."""
    name, odd = fresh(), "${system:user.name}"
    inner = StructType(NestedField(3, odd, LongType()))
    table = catalog.create_table(
        name, Schema(NestedField(1, odd, LongType()), NestedField(2, "s", inner))
    )
    (first, nested) = table.schema().as_arrow()
    table.append(pa.table({odd: pa.array([1], first.type), "s": pa.array([{odd: 2}], nested.type)}))
    call = f"CALL lake.system.create_changelog_view(table => '{name}', changelog_view => 'odd'"
    for given in (
        "",
        ", net_changes => true",
        rf", identifier_columns => array('\u0024{odd[1:]}')",
    ):
        spark.sql(f"{call}{given})").collect()
        found = spark.table("odd")
        assert found.schema["s"].dataType.names == [odd]
        assert [list(row)[:3] for row in found.collect()] == [[1, Row(**{odd: 2}), "INSERT"]]


def test_changes_are_told_by_the_ids_of_rows(spark, catalog, fresh):
    name = fresh()
    table = lineage_table(catalog, name, "copy-on-write")
    spark.sql(f"UPDATE lake.{name} SET k = 'u', m = map(1, 2) WHERE id = 2")
    assert changed_by_row_id(spark, name) == changes_of_python(table.refresh())


@pytest.mark.parametrize(
    "mode",
    ["copy-on-write", pytest.param("merge-on-read", marks=pytest.mark.full("one is in the gate"))],
)
def test_rows_of_a_file_that_is_there_twice_are_told_by_entry(spark, catalog, name, mode):
    table = catalog.load_table(name)
    with table.update_properties() as update:
        update.set("write.delete.mode", mode)
    table.append(pa.table({"id": pa.array([1, 2], pa.int64()), "k": ["a", "a"]}))
    (path,) = (task.file_path for task in table.scan().plan_files())
    table.add_files([path], check_duplicate_files=False)
    table.delete("id = 2")
    call = f"CALL lake.system.create_changelog_view(table => '{name}', changelog_view => 'twice'"
    for given in ("", ", net_changes => true"):
        spark.sql(call + given + ")").collect()
        rows = spark.sql(
            "SELECT _change_ordinal, id, _change_type FROM twice ORDER BY ALL"
        ).collect()
        found = [list(row) for row in rows]
        if given:
            assert [row[1:] for row in found] == [[1, "INSERT"]] * 2
        else:
            both = [[0, 1, "INSERT"], [0, 2, "INSERT"], [1, 1, "INSERT"], [1, 2, "INSERT"]]
            assert found == [*both, [2, 2, "DELETE"], [2, 2, "DELETE"]]


@pytest.mark.full("what an upgrade leaves; the way there is tested before this one")
def test_changes_are_told_by_the_ids_of_rows_that_all_have_one(spark, catalog, fresh):
    name = fresh()
    lineage_table(catalog, name, "copy-on-write", version="2")
    with pytest.raises(PySparkException, match="its format version is 2"):
        changed_by_row_id(spark, name)
    spark.sql(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('format-version' = '3')")
    spark.sql(f"DELETE FROM lake.{name} WHERE id = 1")
    with pytest.raises(PySparkException, match="older than the table's upgrade"):
        changed_by_row_id(spark, name)


@pytest.mark.sparks("4.1", "3.5")
def test_another_spark_tells_changes_by_the_ids_of_rows(sql_on, catalog, fresh, minor):
    sql, name = sql_on(minor), fresh()
    table = lineage_table(catalog, name, "merge-on-read")
    table.upsert(
        pa.Table.from_pylist([{"id": 2, "k": "u", "m": []}], table.schema().as_arrow()), ["id"]
    )
    sql(f"DELETE FROM lake.{name} WHERE _row_id = 4")
    [[view]] = sql(
        f"CALL lake.system.create_changelog_view(table => '{name}', identifier_columns => array('_row_id'))"
    )
    found = sql(f"SELECT _commit_snapshot_id, _row_id, _change_type, id, k FROM {view}")
    expected = changes_of_python(table.refresh())
    assert Counter(map(tuple, found)) == Counter(key[:5] for key in expected.elements())
    assert {key[2] for key in expected} == {"INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"}


@pytest.mark.full("combinations of what the test before this one shows")
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.seeds(2)
def test_changes_by_row_id_are_those_of_python(spark, catalog, fresh, mode, seed):
    name, random = fresh(), Random(seed)
    table = lineage_table(catalog, name, mode)
    merge = (
        "MERGE INTO {t} t USING (SELECT explode(array({one}, 9)) AS id) s ON t._row_id = s.id "
        "WHEN MATCHED THEN UPDATE SET k = '{step}' "
        "WHEN NOT MATCHED THEN INSERT (id, k) VALUES (s.id, 'n')"
    )
    for step in range(12):
        one, other = random.randrange(8), random.randrange(8)
        statement = random.choice(
            [
                f"INSERT INTO {{t}} SELECT id, '{step}', NULL FROM range({one}, 8)",
                f"UPDATE {{t}} SET k = '{step}' WHERE id IN ({one}, {other})",
                f"UPDATE {{t}} SET id = {one} WHERE _row_id % 7 = {other % 7}",
                f"DELETE FROM {{t}} WHERE id = {one} AND _row_id % 2 = 0",
                merge.format(t="{t}", one=one, step=step),
                f"INSERT OVERWRITE {{t}} SELECT * FROM {{t}} WHERE id <> {one}",
                f"CALL lake.system.rewrite_data_files('{name}', options => map('rewrite-all', 'true'))",
            ]
        )
        spark.sql(statement.replace("{t}", f"lake.{name}"))
        if random.random() < 0.2:
            table.refresh().delete(f"id = {one}")
    table.refresh()
    assert changed_by_row_id(spark, name) == changes_of_python(table)
    assert told_by_files(spark, name) == changes_of_python(table)


def lineage_table(catalog, name, mode, version="3"):
    modes = {f"write.{c}.mode": mode for c in ("delete", "update", "merge")}
    schema = pa.schema(
        [("id", pa.int64()), ("k", pa.string()), ("m", pa.map_(pa.int32(), pa.int32()))]
    )
    table = catalog.create_table(name, schema, properties={"format-version": version, **modes})
    for first in (0, 3):
        rows = [{"id": i, "k": "a", "m": [(i, i)]} for i in range(first, first + 3)]
        table.append(pa.Table.from_pylist(rows, schema))
    return table


def changes_of_python(table):
    """The changed rows of each commit, how often each is there."""
    found = Counter()
    for snapshot in table.snapshots():
        if snapshot.operation != Operation.REPLACE:
            parent, own = snapshot.parent_snapshot_id, snapshot.snapshot_id
            for row in table.changes(parent, own, ("*", "_row_id")).to_arrow().to_pylist():
                found[
                    own, row["_row_id"], row["_change_type"], row["id"], row["k"], str(row["m"])
                ] += 1
    return found


SHOWN = "_commit_snapshot_id, _row_id, _change_type, id, k, map_entries(m) AS m"


def shown_row(row):
    pairs = None if row[5] is None else [tuple(pair) for pair in row[5]]
    return (*row[:5], str(pairs))


def changed_by_row_id(spark, name):
    [[view]] = rows(
        spark.sql(
            f"CALL lake.system.create_changelog_view(table => '{name}', identifier_columns => array('_ROW_ID'))"
        )
    )
    assert spark.table(view).columns == [
        "id", "k", "m", "_row_id", "_change_type", "_change_ordinal", "_commit_snapshot_id",
    ]  # fmt: skip
    return Counter(shown_row(row) for row in spark.sql(f"SELECT {SHOWN} FROM {view}").collect())


def told_by_files(spark, name):
    """What is left of the changes of files without rows that keep their id and last update."""
    sides = {"INSERT": {}, "DELETE": {}}
    for *row, number in spark.sql(
        f"SELECT {SHOWN}, _last_updated_sequence_number FROM lake.{name}.changes"
    ).collect():
        side = sides[row[2]]
        assert (row[0], row[1]) not in side
        side[row[0], row[1]] = (number, row)
    found = Counter()
    for kind, other, name_of_update in (
        ("INSERT", "DELETE", "UPDATE_AFTER"),
        ("DELETE", "INSERT", "UPDATE_BEFORE"),
    ):
        for key, (number, row) in sides[kind].items():
            match = sides[other].get(key)
            if match is None or match[0] != number:
                row[2] = kind if match is None else name_of_update
                found[shown_row(row)] += 1
    return found
