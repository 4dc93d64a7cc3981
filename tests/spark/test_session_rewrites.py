"""CALL rewrite_data_files by the session's own executors, on the newest Spark and the oldest."""

from __future__ import annotations

import itertools
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException

from icecomb.format.expressions.manifest_metrics import METRICS
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from tests.catalog.random_table import RandomTable, ordered, plain
from tests.rings import sampled

pytestmark = pytest.mark.usefixtures("own_namespace")

NAMESPACE = "session_rewrites"
NUMBERS = itertools.count(1)
MORE = pytest.mark.full("one rewrite by executors is in the gate, the others by Python")
REFUSED = (PySparkException, AssertionError)  # the second is that of a Spark in another process
BY_SPARK = "'engine', 'spark', 'min-input-files', '2'"


@pytest.fixture
def name():
    return f"{NAMESPACE}.t{next(NUMBERS)}"


def rewritten(sql, name, options=BY_SPARK, more=""):
    """How many files were replaced, by how many, and how many were not."""
    (row,) = sql(
        f"CALL lake.system.rewrite_data_files(table => '{name}', options => map({options}){more})"
    )
    return row[0], row[1], row[3]


def writers(table) -> set[str]:
    """What the table's files say made them."""
    paths = [task.file_path for task in table.refresh().scan().plan_files()]
    return {pq.read_metadata(Path(path.removeprefix("file:"))).created_by for path in paths}


def test_a_session_puts_files_together_and_applies_their_deletes(sql, catalog, name):
    sql(
        f"CREATE TABLE lake.{name} (id bigint, s string, u array<struct<a:int>>) TBLPROPERTIES ("
        "'format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    for n in range(4):
        sql(
            f"INSERT INTO lake.{name} SELECT id, concat('s', id), array(named_struct('a', 1)) "
            f"FROM range({n * 10}, {n * 10 + 10})"
        )
    sql(f"DELETE FROM lake.{name} WHERE id % 5 = 3")
    before = sql(f"SELECT * FROM lake.{name} ORDER BY id")
    assert len(before) == 32
    files = len(list(catalog.load_table(name).scan().plan_files()))
    assert rewritten(sql, name) == (files, 1, 0)
    assert sql(f"SELECT * FROM lake.{name} ORDER BY id") == before
    table = catalog.load_table(name)
    assert "parquet-mr" in writers(table).pop()
    (task,) = table.scan().plan_files()
    assert (task.record_count, task.delete_files) == (32, ())
    assert table.current_snapshot().summary["operation"] == "replace"


LINEAGE = "_row_id, _last_updated_sequence_number"


@pytest.mark.sparks("4.3", "3.5", "4.1")
@pytest.mark.parametrize("file_format", sampled(["parquet", "orc", "avro"], keep=1))
def test_rows_keep_their_ids_where_a_session_moves_them(sql_on, catalog, name, minor, file_format):
    sql = sql_on(minor)
    properties = {
        "format-version": "3",
        "write.delete.mode": "merge-on-read",
        "write.format.default": file_format,
    }
    schema = pa.schema([("id", pa.int64()), ("k", pa.string())])
    table = catalog.create_table(name, schema, properties=properties)
    for first in range(0, 40, 10):
        table.append(pa.table({"id": range(first, first + 10), "k": ["a"] * 10}, schema))
    table.delete("id in (3, 14, 15)")
    table.upsert(pa.table({"id": [7, 38], "k": ["u", "u"]}, schema), ["id"])
    question = f"SELECT id, k, {LINEAGE} FROM lake.{name} ORDER BY id"
    before = sql(question)
    assert [row[2] for row in before] == [row[0] for row in before]
    files = len(list(table.refresh().scan().plan_files()))
    order = ", sort_order => 'id DESC NULLS LAST'"
    assert rewritten(sql, name, BY_SPARK, order) == (files, 1, 0)
    assert sql(question) == before
    of_files = ("id", "k", *LINEAGE.split(", "))
    found = table.refresh().scan(selected_fields=of_files).to_arrow().to_pylist()
    assert [row["id"] for row in found] == sorted((row["id"] for row in found), reverse=True)
    assert sorted(list(row.values()) for row in found) == before
    (task,) = table.scan().plan_files()
    assert (task.record_count, task.delete_files) == (37, ())
    # the next rewrite reads the ids that the files state
    sql(f"INSERT INTO lake.{name} VALUES (40, 'i')")
    grown = sql(question)
    assert rewritten(sql, name) == (2, 1, 0)
    assert sql(question) == grown
    assert grown[:-1] == before
    for statement in ("SELECT * FROM {}", "INSERT INTO {} VALUES (1, 'a', 1, 1)", "DELETE FROM {}"):
        with pytest.raises(REFUSED, match=r"moved_rows is for|A version of table"):
            sql(statement.format(f"lake.{name}.moved_rows"))


@MORE
def test_a_session_sorts_rows_by_ranges(sql, catalog, name):
    sql(f"CREATE TABLE lake.{name} (id bigint, k int) PARTITIONED BY (k)")
    for n in range(3):
        sql(f"INSERT INTO lake.{name} SELECT (id * 7919) % 1000, id % 2 FROM range({n}, {n} + 900)")
    before = sql(f"SELECT * FROM lake.{name} ORDER BY k, id")
    read, added, failed = rewritten(
        sql, name, BY_SPARK, ", sort_order => 'id DESC NULLS LAST', strategy => 'sort'"
    )
    assert (read >= 6, added, failed) == (True, 2, 0)
    assert sql(f"SELECT * FROM lake.{name} ORDER BY k, id") == before
    for task in catalog.load_table(name).scan().plan_files():
        ids = pq.read_table(Path(task.file_path.removeprefix("file:")))["id"].to_pylist()
        assert ids == sorted(ids, reverse=True)


@MORE
def test_files_of_an_older_spec_go_to_the_partitions_of_the_new_one(sql, catalog, name):
    sql(f"CREATE TABLE lake.{name} (id bigint, k int)")
    for n in range(3):
        sql(f"INSERT INTO lake.{name} SELECT id, id % 3 FROM range({n}, {n} + 30)")
    before = sql(f"SELECT * FROM lake.{name} ORDER BY id, k")
    with catalog.load_table(name).update_spec() as spec:
        spec.add_field("k", "identity")
    sql(f"REFRESH TABLE lake.{name}")
    _, added, failed = rewritten(sql, name)
    assert (added, failed) == (3, 0)
    assert sql(f"SELECT * FROM lake.{name} ORDER BY id, k") == before
    tasks = list(catalog.load_table(name).scan().plan_files())
    assert {task.file.spec_id for task in tasks} == {1}
    assert sorted(task.file.partition for task in tasks) == [(0,), (1,), (2,)]


@MORE
def test_what_is_too_large_for_the_driver_goes_to_the_session(sql, catalog, name):
    sql(f"CREATE TABLE lake.{name} (id bigint)")
    for n in range(6):
        sql(f"INSERT INTO lake.{name} VALUES ({n})")
    table = catalog.load_table(name)
    assert rewritten(sql, name, "'copy', 'never'") == (6, 1, 0)
    assert "parquet-cpp" in writers(table).pop()
    sql(f"INSERT INTO lake.{name} VALUES (6)")
    sql(f"ALTER TABLE lake.{name} SET TBLPROPERTIES ('icecomb.maintenance.local-limit'='0')")
    assert rewritten(sql, name, "'min-input-files', '2'") == (2, 1, 0)
    assert "parquet-mr" in writers(table).pop()
    assert sql(f"SELECT * FROM lake.{name} ORDER BY id") == [[n] for n in range(7)]


@MORE
def test_a_branch_is_rewritten_by_itself(sql, catalog, name):
    sql(f"CREATE TABLE lake.{name} (id bigint)")
    sql(f"INSERT INTO lake.{name} VALUES (0)")
    table = catalog.load_table(name)
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    sql(f"REFRESH TABLE lake.{name}")
    for n in range(3):
        sql(f"INSERT INTO lake.{name}.branch_audit VALUES ({n})")
    assert rewritten(sql, name, BY_SPARK, ", branch => 'audit'") == (4, 1, 0)
    assert sql(f"SELECT * FROM lake.{name}") == [[0]]
    assert sorted(sql(f"SELECT * FROM lake.{name}.branch_audit")) == [[0], [0], [1], [2]]


@MORE
def test_what_a_session_cannot_read_is_told_and_leaves_nothing_behind(sql, catalog, name):
    sql(f"CREATE TABLE lake.{name} (id bigint)")
    for n in range(3):
        sql(f"INSERT INTO lake.{name} VALUES ({n})")
    table = catalog.load_table(name)
    lost = next(iter(table.scan().plan_files())).file_path.removeprefix("file:")
    kept = Path(lost).read_bytes()
    Path(lost).unlink()
    there = set(Path(lost).parent.rglob("*.parquet"))
    with pytest.raises(REFUSED, match="Spark could not rewrite 3 files"):
        rewritten(sql, name)
    one_by_one = "'engine', 'spark', 'rewrite-all', 'true', 'max-file-group-size-bytes', '1'"
    with pytest.raises(REFUSED, match=Path(lost).name):
        rewritten(sql, name, one_by_one)
    assert set(Path(lost).parent.rglob("*.parquet")) == there
    assert table.refresh().metadata_location == catalog.load_table(name).metadata_location
    options = BY_SPARK + ", 'partial-progress.enabled', 'true'"
    assert rewritten(sql, name, options) == (0, 0, 3)
    Path(lost).write_bytes(kept)
    assert rewritten(sql, name) == (3, 1, 0)


@MORE
@pytest.mark.parametrize(
    ("options", "more", "problem"),
    [
        ("'engine', 'flink'", "", "There is no engine 'flink'"),
        ("'engine', 'spark'", ", sort_order => 'zorder(id)'", "neither sorts by zorder"),
        ("'engine', 'spark', 'copy', 'require'", "", "nor copies row groups"),
    ],
)
def test_a_session_is_not_asked_for_what_it_cannot_do(sql, name, options, more, problem):
    sql(f"CREATE TABLE lake.{name} (id bigint)")
    sql(f"INSERT INTO lake.{name} VALUES (1)")
    with pytest.raises(REFUSED, match=problem):
        rewritten(sql, name, options, more)


def described(table):
    """What manifests tell of the rows of each partition's one file, in the table's columns."""
    names = set(METRICS) - {"column_sizes"}
    columns = set(table.refresh().schema().field_ids)
    found = {}
    for manifest in read_manifests(table.io, table.refresh().current_snapshot()):
        for entry in read_manifest(table.io, manifest, discard_deleted=True):
            file = entry.data_file
            if file.content is DataFileContent.DATA:
                told = {
                    name: {i: v for i, v in (getattr(file, name) or {}).items() if i in columns}
                    for name in names
                }
                key = str(file.partition)
                assert key not in found
                found[key] = {"record_count": file.record_count, **told}
    return found


def in_order(table):
    """The rows of each partition's one file, as they follow each other."""
    scan = table.refresh().scan()
    if table.metadata.format_version == 3:
        scan = scan.select("*", *LINEAGE.split(", "))
    return {
        str(task.file.partition): plain(scan.to_arrow([task]).to_pylist())
        for task in scan.plan_files()
    }


@MORE
@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.seeds(2)
def test_whatever_the_rows_a_session_writes_them_as_this_machine_decodes_and_copies_them(
    sql, catalog, name, seed, version
):
    random = Random(seed)
    made = RandomTable(
        random, catalog, name, random.choice(["parquet", "parquet", "orc", "avro"]), version=version
    )
    made.append()
    for _ in range(random.randint(4, 10)):
        made.change()
    made.append()
    table = made.table
    with table.transaction() as change:
        change.set_properties(
            {
                "write.format.default": "parquet",
                "icecomb.maintenance.copy-min-row-group-bytes": "0",
            }
        )
    everything = {"rewrite-all": "true", "remove-dangling-deletes": "true"}
    for _ in range(2):  # what files of older specs become is a file of its own at first
        rewritten(sql, name, "'engine', 'spark', 'rewrite-all', 'true'")
    assert ordered(table.refresh().scan().to_arrow().to_pylist()) == made.expected()
    by_session, rows = described(table), in_order(table)
    for copy in ("never", "require"):
        table.maintenance.rewrite_data_files(options={**everything, "copy": copy})
        assert in_order(table) == rows
        assert described(table) == by_session
