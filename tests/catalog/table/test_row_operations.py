"""Delete, overwrite and upsert on file-system tables; what others read is compared where they can."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from agreed_rows import ordered, rows
from pyiceberg.table import StaticTable

from icecomb.format.errors import (
    CommitFailedError,
    CommitStateUnknownError,
    ConfigurationError,
    ExpressionError,
    FileIOError,
    NoSuchSnapshotError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.evolution.schema_update import UpdateSchema
from icecomb.format.evolution.spec_update import UpdateSpec
from icecomb.format.expressions.expression import AlwaysFalse, EqualTo, LessThan
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.overwrite import OverwriteFiles, ReplacePartitions
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.operation.snapshot_management import ManageSnapshots
from icecomb.format.row_changes.table_append import append_rows
from icecomb.format.row_changes.write_target import WriteTarget
from icecomb.format.rows.deletes.position_delete_writer import PositionDeleteWriter
from icecomb.format.rows.write.data_writer import DataWriter, write_data
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.transform import parse_transform
from tests.rings import sampled

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
NAN = float("nan")
MERGE = {"write_delete_mode": "merge-on-read", "write_merge_mode": "merge-on-read"}


def frame(*rows) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], SCHEMA)


def new_table(lake, *parts, schema=SCHEMA, partition=(), **properties):
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(schema.get_field_index(c) + 1, 1000 + i, parse_transform(t), f"{c}_{t}")
            for i, (c, t) in enumerate(partition)
        ),
    )
    given = {k.replace("_", "."): v for k, v in properties.items()}
    table = lake.create_table("db.t", schema, partition_spec=spec, properties=given)
    for part in parts:
        table.append(part)
    return table


def data_files(table) -> set[str]:
    """The Parquet files in the table's folder."""
    folder = Path(table.location().removeprefix("file:"))
    return {str(p) for p in folder.rglob("*.parquet")}


def live_files(table) -> set[str]:
    """The data and delete files that the current snapshot refers to."""
    found = set()
    for task in table.scan().plan_files():
        found |= {f.file_path.removeprefix("file:") for f in (task.file, *task.delete_files)}
    return found


def ids(table) -> list[int]:
    """The ids that our scan alone finds: PyIceberg has a file once."""
    return sorted(table.refresh().scan().to_arrow()["id"].to_pylist())


def summary(table) -> dict[str, str]:
    return dict(table.current_snapshot().summary)


def test_a_row_for_which_the_filter_is_unknown_stays(lake):
    table = new_table(lake, frame((1, "a", 1.0), (2, None, None), (None, "c", NAN)))
    table.delete("id < 2")
    assert rows(table) == [(2, None, None), (None, "c", "NaN")]
    table.delete("s != 'z'")
    assert rows(table) == [(2, None, None)]


def test_files_that_match_as_a_whole_go_unread_and_others_are_written_anew(lake):
    table = new_table(
        lake,
        frame((1, "a", 1.0), (2, "b", 2.0)),
        frame((3, "c", 3.0), (9, "d", 4.0)),
        frame((8, "e", 5.0)),
    )
    (whole,) = table.scan("id = 1").plan_files()
    Path(whole.file.file_path.removeprefix("file:")).unlink()
    table.delete("id <= 3")
    assert rows(table) == [(8, "e", 5.0), (9, "d", 4.0)]
    found = summary(table)
    assert found["operation"] == "overwrite"
    assert (found["deleted-data-files"], found["added-data-files"]) == ("2", "1")
    assert (found["deleted-records"], found["added-records"]) == ("4", "1")
    assert len(table.snapshots()) == 4


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.delete("id = 1"),
        lambda table: table.overwrite(frame((9, "i", 9.0)), "id = 1"),
        lambda table: table.upsert(frame((1, "new", 9.0)), join_cols=["id"]),
    ],
)
def test_a_file_that_is_there_twice_does_not_go_where_one_of_them_was_read(lake, change):
    """They have different deletes: only in the one that came last there is a row to change."""
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)), **MERGE)
    (task,) = table.scan().plan_files()
    table.delete("id = 1")
    table.commit(OverwriteFiles(table.io).append_data_file(task.file))
    with table.refresh().update_properties() as update:
        for command in ("delete", "merge"):
            update.set(f"write.{command}.mode", "copy-on-write")
    with pytest.raises(ValidationError, match="the table has it 2 times"):
        change(table.refresh())
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [1, 2, 2]
    table.delete("id = 2")
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [1]


@pytest.mark.parametrize("row_filter", ["x = 1.0", "x = 1.0 or id = 3"])
@pytest.mark.parametrize("mode", [{}, MERGE])
@pytest.mark.parametrize("merged", [False, True])
def test_a_file_that_two_partitions_share_does_not_go_with_one_of_them(
    lake, mode, row_filter, merged
):
    """As where two partitions of a Hive table have one folder."""
    table = new_table(lake, frame((1, "a", 1.0)), partition=[("x", "identity")], **mode)
    (task,) = table.scan().plan_files()
    shared = replace(task.file, partition=(2.0,), lower_bounds={}, upper_bounds={})
    table.commit(OverwriteFiles(table.io).append_data_file(shared))
    table.refresh().append(frame((3, "c", 3.0), (4, "d", 3.0)))
    if merged:
        table.maintenance.rewrite_manifests()
    with suppress(ValidationError):  # where both are in one manifest
        table.delete(row_filter)
    assert 2.0 in table.refresh().scan().to_arrow()["x"].to_pylist()


@pytest.mark.parametrize("row_filter", ["id = 1", "id = 1 or id = 3"])
def test_merge_on_read_does_not_delete_in_a_file_that_two_partitions_share(lake, row_filter):
    """What names a data file is about all entries of it; only of one were rows looked up."""
    table = new_table(
        lake, frame((1, "a", 1.0), (2, "b", 1.0)), partition=[("x", "identity")], **MERGE
    )
    (task,) = table.scan().plan_files()
    shared = replace(task.file, partition=(2.0,), lower_bounds={}, upper_bounds={})
    table.commit(OverwriteFiles(table.io).append_data_file(shared))
    table.refresh().append(frame((3, "c", 3.0), (4, "d", 3.0)))
    before = sorted(table.refresh().scan().to_arrow()["id"].to_pylist())
    with pytest.raises(ValidationError, match="more than once"):
        table.delete(f"({row_filter}) and x <> 2.0")
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == before


def test_a_file_that_was_moved_to_another_partition_does_not_go_with_the_old_one(lake):
    """Its manifest tells where it was, beside a file that is there still."""
    both = frame((1, "a", 1.0), (9, "z", 9.0))
    table = new_table(lake, both, partition=[("x", "identity")])
    old = next(task.file for task in table.scan().plan_files() if task.file.partition == (1.0,))
    moved = replace(old, partition=(2.0,), lower_bounds={}, upper_bounds={})
    table.commit(OverwriteFiles(table.io).delete_data_file(old))
    table.refresh().commit(OverwriteFiles(table.io).append_data_file(moved))
    table.delete("x = 1.0 or id = 3")
    assert sorted(table.refresh().scan().to_arrow()["x"].to_pylist()) == [2.0, 9.0]


def test_a_delete_of_whole_files_is_a_delete_snapshot(lake):
    table = new_table(lake, frame((1, "a", 1.0)), frame((2, "b", 2.0)))
    table.delete(EqualTo("id", 1))
    assert summary(table)["operation"] == "delete"
    assert rows(table) == [(2, "b", 2.0)]
    table.delete()
    assert rows(table) == []
    assert summary(table)["total-data-files"] == "0"


def test_a_delete_that_matches_nothing_commits_nothing(lake):
    table = new_table(lake)
    table.delete()
    table.append(frame((1, "a", 1.0), (5, "b", None)))
    for nothing in ("id = 3", "id > 5", "x is nan", "s = 'aa'", AlwaysFalse()):
        table.delete(nothing)
    assert len(table.snapshots()) == 1


def test_a_partition_is_deleted_by_metadata_alone(lake):
    table = new_table(
        lake,
        frame((1, "a", 1.0), (2, "b", 2.0), (3, None, 3.0)),
        partition=[("s", "identity")],
    )
    for path in data_files(table):
        Path(path).rename(path + ".away")
    table.delete("s = 'a' or s is null")
    assert summary(table)["deleted-data-files"] == "2"
    for path in Path(table.location().removeprefix("file:")).rglob("*.away"):
        path.rename(str(path).removesuffix(".away"))
    assert rows(table) == [(2, "b", 2.0)]


def test_rewritten_rows_stay_in_their_partitions(lake):
    table = new_table(
        lake,
        frame(*((i, s, float(i)) for i, s in enumerate("aabbaabb"))),
        partition=[("s", "identity"), ("id", "bucket[2]")],
    )
    before = {t.file.partition for t in table.scan().plan_files()}
    table.delete("x in (1, 6)")
    assert {t.file.partition for t in table.scan().plan_files()} <= before
    assert [r[0] for r in rows(table)] == [0, 2, 3, 4, 5, 7]


def test_rows_of_an_old_partition_spec_and_schema_are_rewritten(lake):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)), partition=[("s", "identity")])
    UpdateSchema(table.metadata, table.commit).rename_column("x", "y").commit()
    UpdateSpec(table.metadata, table.commit).remove_field("s_identity").commit()
    table.append(pa.table({"id": [3, 4], "s": ["a", "b"], "y": [3.0, 4.0]}))
    table.delete("y > 1.5 and y < 3.5")
    assert rows(table) == [(1, "a", 1.0), (4, "b", 4.0)]
    assert summary(table)["operation"] == "overwrite"


def test_decimals_of_38_digits_are_found_and_deleted_in_their_partitions(lake):
    values = [Decimal(f"12345678901234567890123456789012345.{n}") for n in (100, 157, 158, 200)]
    schema = pa.schema([("d", pa.decimal128(38, 3))])
    table = new_table(
        lake, pa.table([values], schema), schema=schema, partition=[("d", "truncate[10]")]
    )
    for literal in values:
        found = table.scan(f"d > {literal}").to_arrow()["d"].to_pylist()
        assert sorted(found) == [value for value in values if value > literal]
    table.delete(f"d <= {values[1]}")
    assert sorted(table.scan().to_arrow()["d"].to_pylist()) == values[2:]


def test_a_filter_on_a_field_in_a_struct_deletes_by_it(lake):
    points = pa.array([{"a": 1}, {"a": 2}, None, {"a": None}], pa.struct([("a", pa.int64())]))
    data = pa.table({"id": [1, 2, 3, 4], "p": points})
    table = new_table(lake, data, schema=data.schema)
    table.delete("p.a = 2")
    assert [r["id"] for r in table.scan().to_arrow().to_pylist()] == [1, 3, 4]


@pytest.mark.parametrize("row_filter", ["nope = 1", "id = 'x'", EqualTo("ID", 1), "id ="], ids=repr)
def test_a_filter_that_does_not_fit_is_refused_before_anything_is_read(lake, row_filter):
    table = new_table(lake, frame((1, "a", 1.0)))
    before = data_files(table)
    with pytest.raises(ExpressionError):
        table.delete(row_filter)
    with pytest.raises(ExpressionError):
        table.overwrite(frame((2, "b", 2.0)), row_filter)
    assert data_files(table) == before
    assert len(table.refresh().snapshots()) == 1


def test_names_in_a_filter_may_be_spelled_in_any_case(lake):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)))
    table.delete("ID = 1", case_sensitive=False)
    assert rows(table) == [(2, "b", 2.0)]


def table_of_a_careless_writer(lake, **properties):
    """A table whose properties nobody checked when they were set."""
    version = {k: properties.pop(k) for k in ("format-version",) if k in properties}
    table = lake.create_table("db.t", SCHEMA, properties=version)
    file = Path(table.metadata_location)
    content = json.loads(file.read_text())
    content["properties"].update(properties)
    file.write_text(json.dumps(content))
    return lake.load_table("db.t")


@pytest.mark.parametrize(
    "properties",
    [{"write.delete.isolation-level": "none"}, {"write.delete.mode": "sometimes"}],
    ids=repr,
)
def test_a_mode_or_isolation_level_that_does_not_exist_is_refused(lake, properties):
    table = table_of_a_careless_writer(lake, **properties)
    table.append(frame((1, "a", 1.0), (2, "b", 2.0)))
    with pytest.raises(ConfigurationError, match=next(iter(properties))):
        table.delete("id = 1")


def test_an_overwrite_replaces_all_rows_in_one_snapshot(lake):
    table = new_table(lake, frame((1, "a", 1.0)), frame((2, "b", 2.0)))
    table.overwrite(frame((3, "c", 3.0)), snapshot_properties={"by": "me"})
    assert rows(table) == [(3, "c", 3.0)]
    found = summary(table)
    assert (found["operation"], found["by"]) == ("overwrite", "me")
    assert len(table.snapshots()) == 3


def test_an_overwrite_by_filter_leaves_the_other_rows(lake):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0), (3, "c", None)))
    reader = frame((7, "g", 7.0), (2, "new", 0.0)).to_reader(1)
    table.overwrite(reader, "x >= 2")
    assert rows(table) == [(1, "a", 1.0), (2, "new", 0.0), (3, "c", None), (7, "g", 7.0)]


def test_an_overwrite_without_rows_deletes(lake):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)))
    table.overwrite(frame(), "id = 1")
    assert rows(table) == [(2, "b", 2.0)]
    table.overwrite(frame())
    assert rows(table) == []
    table.overwrite(frame())
    assert len(table.snapshots()) == 3


def test_a_dynamic_overwrite_replaces_the_partitions_of_the_new_rows(lake):
    table = new_table(
        lake,
        frame((1, "a", 1.0), (2, "b", 2.0), (3, None, 3.0)),
        partition=[("s", "identity")],
    )
    table.dynamic_partition_overwrite(frame((9, "a", 9.0), (8, None, 8.0), (7, "new", 7.0)))
    assert [r[0] for r in rows(table)] == [2, 7, 8, 9]
    assert summary(table)["replace-partitions"] == "true"
    table.dynamic_partition_overwrite(frame())
    assert len(table.snapshots()) == 2


OF_TIMES = pa.schema([*SCHEMA, ("t", pa.timestamp("us"))])
HOUR = 3_600_000_000


def timed(*rows) -> pa.Table:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(c, f.type) for c, f in zip(columns, OF_TIMES, strict=True)]
    return pa.table(arrays, OF_TIMES)


@pytest.mark.parametrize(
    "before", sampled([[], [("id", "bucket[3]")], [("x", "identity")]], keep=1), ids=str
)
@pytest.mark.parametrize(
    "after",
    [
        [("s", "identity"), ("t", "day")],
        [("s", "truncate[1]"), ("x", "identity")],
        [("id", "bucket[2]"), ("t", "month")],
    ],
    ids=str,
)
def test_a_dynamic_overwrite_replaces_rows_of_its_partitions_written_under_another_spec(
    lake, before, after
):
    """As PyIceberg's, which does so for columns as they are; Iceberg Java leaves such files."""
    values = itertools.product(("a", "ab", None), (1.0, NAN, None), (0, 25 * HOUR, None))
    given = [(i, *each) for i, each in enumerate(values)]
    table = new_table(lake, timed(*given), schema=OF_TIMES, partition=before)
    with table.update_spec() as update:
        for field in table.spec().fields:
            update.remove_field(field.name)
        for number, (column, transform) in enumerate(after):
            update.add_field(column, transform, f"new_{number}")
    table.append(timed((40, "b", 2.0, 0), (41, "a", 1.0, 0)))
    new = [(50, "a", NAN, 1), (51, None, 1.0, 26 * HOUR)]

    def partition(row):
        values = dict(zip(OF_TIMES.names, row, strict=True))
        fields = table.schema()
        return [
            str(parse_transform(name).apply(values[column], fields.find_field(column).field_type))
            for column, name in after
        ]

    replaced = [partition(row) for row in new]
    old = (*given, (40, "b", 2.0, 0), (41, "a", 1.0, 0))
    kept = [row for row in old if partition(row) not in replaced]
    assert 0 < len(kept) < len(old)
    table.dynamic_partition_overwrite(timed(*new))
    found = table.scan().to_arrow().to_pylist()
    assert sorted(row["id"] for row in found) == sorted(row[0] for row in (*kept, *new))
    table.dynamic_partition_overwrite(timed(*new))
    assert table.scan().to_arrow().num_rows == len(found)


def test_files_of_another_spec_are_replaced_whole_or_not_at_all_where_their_rows_are_not_read(lake):
    """Spark's dynamic overwrite, whose commit reads no rows."""
    table = new_table(lake, frame((1, "a", 1.0), (2, "a", 2.0)), frame((3, "c", 3.0)))
    table.append(frame((4, "b", 4.0), (5, "d", 5.0)))
    with table.update_spec() as update:
        update.add_field("s", "identity")
    table.append(frame((6, "a", 6.0), (7, "c", 7.0)))

    def replace_partitions(*given):
        files = write_data(table.io, table.metadata, frame(*given))
        operation = ReplacePartitions(table.io)
        for file in files:
            operation.append_data_file(file)
        table.commit(operation)

    replace_partitions((10, "a", 0.0), (11, "new", 0.0))
    assert sorted(row[0] for row in rows(table)) == [3, 4, 5, 7, 10, 11]
    with pytest.raises(ValidationError, match="some, but not all, of its rows") as refusal:
        replace_partitions((12, "d", 0.0))
    assert "rewrite_data_files with the option rewrite-all" in refusal.value.hint
    table.maintenance.rewrite_data_files(options={"rewrite-all": "true"})
    replace_partitions((12, "d", 0.0))
    assert sorted(row[0] for row in rows(table)) == [3, 4, 7, 10, 11, 12]


def test_a_dynamic_overwrite_of_an_unpartitioned_table_is_refused(lake):
    table = new_table(lake, frame((1, "a", 1.0)))
    with pytest.raises(ValidationError, match="not partitioned"):
        table.dynamic_partition_overwrite(frame((2, "b", 2.0)))


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"id": [1], "s": ["a"], "x": [1.0], "extra": [1]}),
        pa.table({"id": ["one"], "s": ["a"], "x": [1.0]}),
        pa.table({"id": [1, None], "s": ["a", "b"], "x": [1.0, 1.0]}),
        pa.table({"s": ["a"]}),
    ],
    ids=["extra column", "wrong type", "null in a required column", "required column missing"],
)
def test_rows_that_do_not_fit_commit_nothing_and_leave_no_file(lake, data):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *list(SCHEMA)[1:]])
    table = new_table(lake, schema=schema, partition=[("s", "identity")])
    table.append(frame((1, "a", 1.0)))
    before = data_files(table)
    for operation in (table.overwrite, table.dynamic_partition_overwrite):
        with pytest.raises((SchemaError, ValidationError)):
            operation(data)
    assert data_files(table) == before
    assert len(table.refresh().snapshots()) == 1


def test_an_unknown_branch_is_refused_and_a_branch_is_changed_alone(lake):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)))
    with pytest.raises(NoSuchSnapshotError):
        table.delete("id = 1", branch="audit")
    manage = ManageSnapshots(table.metadata, table.io, table.commit)
    manage.create_branch(table.metadata.current_snapshot_id, "audit").commit()
    table.delete("id = 1", branch="audit")
    assert [r[0] for r in rows(table)] == [1, 2]
    assert table.scan().use_ref("audit").to_arrow()["id"].to_pylist() == [2]


def test_data_that_others_add_to_the_deleted_range_is_a_conflict_when_serializable(lake):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)))
    stale = lake.load_table("db.t")
    table.append(frame((1, "late", 0.0)))
    before = data_files(table)
    with pytest.raises(ValidationError, match="conflicting file"):
        stale.delete("id = 1")
    assert data_files(table) == before


def test_a_write_that_fails_in_the_middle_leaves_no_file(lake, monkeypatch):
    table = new_table(lake, *(frame((i, "a", 1.0), (i + 10, "b", 2.0)) for i in range(3)))
    before = data_files(table)
    taken = itertools.count()
    write = DataWriter.write

    def failing(writer, batch):
        if next(taken) == 2:
            raise FileIOError("disk full")
        write(writer, batch)

    monkeypatch.setattr(DataWriter, "write", failing)
    with pytest.raises(FileIOError, match="disk full"):
        table.delete("s = 'a'")
    assert data_files(table) == before


def test_files_stay_when_it_is_unknown_whether_the_change_was_committed(lake, monkeypatch):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)))
    before = data_files(table)

    def unknown(producer):
        producer.apply(table.metadata)
        raise CommitStateUnknownError("lost the connection")

    monkeypatch.setattr(table, "commit", unknown)
    with pytest.raises(CommitStateUnknownError):
        table.delete("id = 1")
    assert len(data_files(table) - before) == 1


def test_a_table_of_format_version_1_is_changed_by_copying(lake):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0)), **{"format-version": "1"})
    table.delete(LessThan("id", 2))
    table.overwrite(frame((3, "c", 3.0)), "id = 5")
    assert rows(table) == [(2, "b", 2.0), (3, "c", 3.0)]


def test_an_upsert_replaces_rows_that_differ_and_adds_new_ones_in_one_snapshot(lake):
    table = new_table(
        lake, frame((1, "a", 1.0), (2, "b", NAN), (3, "c", None)), frame((4, "d", 4.0))
    )
    data = frame((1, "a", 1.5), (2, "b", NAN), (3, "c", None), (4, None, 4.0), (5, "e", 5.0))
    result = table.upsert(data, ["id"])
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
    assert rows(table) == ordered(data)
    assert len(table.snapshots()) == 3
    assert table.upsert(data, ["id"]) == type(result)(0, 0)
    assert len(table.snapshots()) == 3


def test_an_upsert_may_only_update_or_only_insert(lake):
    table = new_table(lake, frame((1, "a", 1.0)))
    data = frame((1, "A", 1.0), (2, "b", 2.0))
    result = table.upsert(data, ["id"], when_not_matched_insert_all=False)
    assert (result.rows_updated, result.rows_inserted) == (1, 0)
    assert rows(table) == [(1, "A", 1.0)]
    late = frame((1, "x", 0.0), (2, "b", 2.0))
    result = table.upsert(late, ["id"], when_matched_update_all=False)
    assert (result.rows_updated, result.rows_inserted) == (0, 1)
    assert rows(table) == [(1, "A", 1.0), (2, "b", 2.0)]
    assert summary(table)["operation"] == "append"
    with pytest.raises(ValidationError, match="does nothing"):
        table.upsert(late, ["id"], when_matched_update_all=False, when_not_matched_insert_all=False)


def test_a_key_of_several_columns_moves_rows_between_partitions(lake):
    old = frame(*((i, s, 0.0) for i in range(300) for s in "ab"))
    table = new_table(lake, old, partition=[("s", "identity")])
    result = table.upsert(frame((7, "a", 1.0), (7, "c", 1.0), (299, "b", 1.0)), ["id", "s"])
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
    assert [r for r in rows(table) if r[2] == 1.0] == [
        (299, "b", 1.0),
        (7, "a", 1.0),
        (7, "c", 1.0),
    ]
    assert len(rows(table)) == 601
    by_text = table.upsert(pa.table({"id": [1], "s": ["c"], "x": [9.0]}), ["s"])
    assert by_text.rows_updated == 1


def test_the_identifier_fields_are_the_key_where_none_is_given(lake):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), *list(SCHEMA)[1:]])
    table = new_table(lake, frame((1, "a", 1.0)), schema=schema)
    with pytest.raises(ValidationError, match="no key"):
        table.upsert(frame((1, "b", 1.0)))
    UpdateSchema(table.metadata, table.commit).set_identifier_fields("id").commit()
    assert table.upsert(frame((1, "b", 1.0))).rows_updated == 1


def test_many_keys_of_every_type_are_found(lake):
    n = 1000
    numbers = pa.array(range(n), pa.int64())
    columns = {
        "date": numbers.cast(pa.int32()).cast(pa.date32()),
        "time": numbers.cast(pa.time64("us")),
        "ts": numbers.cast(pa.timestamp("us")),
        "tz": numbers.cast(pa.timestamp("us", tz="UTC")),
        "text": numbers.cast(pa.string()),
        "dec": numbers.cast(pa.decimal128(20, 0)),
        "bin": numbers.cast(pa.string()).cast(pa.binary()),
        "fixed": pa.array([i.to_bytes(4, "big") for i in range(n)], pa.binary(4)),
        "uuid": pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([i.to_bytes(16, "big") for i in range(n)], pa.binary(16))
        ),
        "v": pa.repeat(pa.scalar(0, pa.int32()), n),
    }
    old = pa.table(columns)
    table = new_table(lake, old.slice(0, 900), schema=old.schema)
    new = old.set_column(len(columns) - 1, "v", pa.repeat(pa.scalar(1, pa.int32()), n))
    for given, key in enumerate(list(columns)[:-1]):
        changed = new.set_column(
            len(columns) - 1, "v", pa.repeat(pa.scalar(given + 1, pa.int32()), n)
        )
        result = table.upsert(changed.slice(300), [key])
        assert (result.rows_updated, result.rows_inserted) == (
            600 + 100 * (given > 0),
            100 * (given == 0),
        )
        few = table.upsert(changed.slice(0, 3), [key])
        assert (few.rows_updated, few.rows_inserted) == (3, 0)


def test_nested_values_are_compared_row_by_row(lake):
    kind = pa.struct(
        [
            ("l", pa.list_(pa.float64())),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("s", pa.list_(pa.struct([("a", pa.int64())]))),
        ]
    )
    values = [
        {"l": [1.0, NAN], "m": [("a", 1)], "s": [{"a": 1}, None]},
        {"l": [], "m": [], "s": None},
        {"l": None, "m": None, "s": [{"a": None}]},
        None,
        {"l": [1.0], "m": [("a", 1)], "s": []},
        {"l": [1.0, 2.0], "m": [("a", None)], "s": [{"a": 1}]},
    ]
    data = pa.table({"id": range(len(values)), "v": pa.array(values, kind)})
    table = new_table(lake, data, schema=data.schema)
    for value in values:
        table.overwrite(data)
        given = pa.table({"id": range(len(values)), "v": pa.array([value] * len(values), kind)})
        assert table.upsert(given, ["id"]).rows_updated == len(values) - 1
        assert table.upsert(given, ["id"]).rows_updated == 0


@pytest.mark.parametrize(
    ("data", "keys", "message"),
    [
        (frame((1, "a", 1.0), (1, "b", 1.0)), ["id"], "several rows with the key id=1"),
        (frame((1, "a", 1.0), (2, "a", 1.0), (1, "a", 2.0)), ["id", "s"], "id=1, s='a'"),
        (frame((None, "a", 1.0)), ["id"], "holds 1 nulls"),
        (frame((1, "a", 1.0)), ["x"], "cannot be a key"),
        (frame((1, "a", 1.0)), ["nope"], "nope"),
        (frame((1, "a", 1.0)), ["ID"], "ID"),
        (frame((1, "a", 1.0)), [], "no key"),
        (frame((7, "a", 1.0)), ["id"], "table has several rows with the key id=7"),
        (pa.table({"id": [1], "s": ["a"]}), ["id"], "'x'"),
        (pa.table({"id": [1], "s": ["a"], "x": [1.0], "y": [1]}), ["id"], "y"),
    ],
    ids=itertools.count(),
)
def test_an_upsert_that_cannot_be_right_is_refused(lake, data, keys, message):
    table = new_table(lake, frame((7, "a", 0.0), (1, "z", 0.0)), frame((7, "b", 0.0)))
    before = data_files(table)
    with pytest.raises((SchemaError, ValidationError), match=message):
        table.upsert(data, keys)
    assert data_files(table) == before
    assert len(table.refresh().snapshots()) == 2


def test_two_upserts_never_insert_the_same_key(lake):
    table = new_table(lake)
    stale = lake.load_table("db.t")
    table.upsert(frame((1, "a", 1.0)), ["id"])
    before = data_files(table)
    with pytest.raises(ValidationError, match="conflicting file"):
        stale.upsert(frame((1, "b", 1.0)), ["id"])
    assert data_files(table) == before
    stale.upsert(frame((2, "b", 1.0)), ["id"])
    assert [r[0] for r in rows(stale)] == [1, 2]


def test_files_without_a_key_of_the_data_are_not_written_anew(lake):
    table = new_table(lake, *(frame((i, "a", 0.0), (i + 100, "b", 0.0)) for i in range(5)))
    before = live_files(table)
    table.upsert(frame((2, "new", 0.0), (50, "in", 0.0)), ["id"])
    assert len(before - live_files(table)) == 1


def delete_files(table):
    """The live delete files of the current snapshot, as its manifests describe them."""
    manifests = read_manifests(table.io, table.current_snapshot())
    entries = (e for m in manifests for e in read_manifest(table.io, m) if e.is_live)
    files = (e.data_file for e in entries)
    return sorted((f for f in files if f.content.value), key=lambda f: f.file_path)


def test_a_delete_that_merges_on_read_leaves_data_files_as_they_are(lake):
    table = new_table(
        lake, frame(*((i, "a", None) for i in range(10))), frame((10, "b", 1.0)), **MERGE
    )
    before = data_files(table)
    table.delete("id in (2, 5) or id >= 10")
    assert [r[0] for r in rows(table)] == [0, 1, 3, 4, 6, 7, 8, 9]
    (file,) = delete_files(table)
    assert len(data_files(table) - before) == 1
    found = summary(table)
    assert found["added-position-deletes"] == "2"
    assert (found["deleted-data-files"], found.get("added-data-files")) == ("1", None)
    table.delete("id in (2, 3)")
    assert [r[0] for r in rows(table)] == [0, 1, 4, 6, 7, 8, 9]
    # the new delete file holds the older deletes of the data file, and takes the place of theirs
    (joined,) = delete_files(table)
    assert (joined.record_count, joined == file) == (3, False)
    found = summary(table)
    assert (found["added-position-deletes"], found["removed-position-deletes"]) == ("3", "2")
    table.delete("id = 5")
    assert len(table.snapshots()) == 4


def test_deletes_of_a_partition_stay_beside_those_of_one_file(lake):
    rows_of = frame(*((i, "a", None) for i in range(10)))
    table = new_table(lake, rows_of, rows_of, write_delete_granularity="partition", **MERGE)
    table.delete("id = 1")
    (wide,) = delete_files(table)
    with table.update_properties() as update:
        update.set("write.delete.granularity", "file")
    table.delete("id = 2")
    table.delete("id = 3")
    own = [f for f in delete_files(table) if f != wide]
    assert [f.record_count for f in own] == [2, 2]
    assert wide in delete_files(table)
    assert sorted({r[0] for r in rows(table)}) == [0, 4, 5, 6, 7, 8, 9]


def test_entries_of_a_file_with_different_deletes_keep_them_apart(lake):
    """The older entry has lost a row that the newer one has."""
    table = new_table(lake, frame(*((i, "a", None) for i in range(1, 6))), **MERGE)
    (task,) = table.scan().plan_files()
    table.delete("id = 1")
    table.commit(OverwriteFiles(table.io).append_data_file(task.file))
    table.refresh().delete("id = 3")
    assert ids(table) == [1, 2, 2, 4, 4, 5, 5]
    table.delete("id = 1 or id = 4")
    assert ids(table) == [2, 2, 5, 5]


@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_the_delete_files_of_a_removed_partition_go_with_it(lake, mode, granularity):
    part = frame((1, "a", 1.0), (2, "a", 2.0), (1, "b", 1.0), (2, "b", 2.0))
    table = new_table(
        lake,
        part,
        part,
        partition=[("s", "identity")],
        write_delete_granularity=granularity,
        **MERGE,
    )
    table.delete("id = 1")
    with table.update_properties() as update:
        update.set("write.delete.mode", mode)
    table.delete("s = 'a'")
    assert {f.partition for f in delete_files(table)} == {("b",)}
    assert [
        (p["partition"]["s_identity"], p["position_delete_record_count"])
        for p in table.inspect.partitions().to_pylist()
    ] == [("b", 2)]
    assert rows(table) == [(2, "b", 2.0), (2, "b", 2.0)]
    table.delete()
    assert delete_files(table) == []


def test_deletes_of_a_file_stay_while_another_partition_has_it(lake):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 1.0)), partition=[("x", "identity")])
    (task,) = table.scan().plan_files()
    shared = replace(task.file, partition=(2.0,), lower_bounds={}, upper_bounds={})
    writer = PositionDeleteWriter(table.io, table.metadata, "of-both")
    writer.add(task.file, np.array([0]))
    (deletes,) = writer.close()
    table.commit(OverwriteFiles(table.io).append_data_file(shared))
    # as a writer that does not look at other partitions does
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icecomb.format.operation.row_delta.refuse_shared", lambda *_, **__: None)
        table.refresh().commit(RowDelta(table.io).add_deletes(deletes))
    assert sorted(table.refresh().scan().to_arrow()["id"].to_pylist()) == [2, 2]
    table.delete("x = 1.0")
    assert table.refresh().scan().to_arrow()["id"].to_pylist() == [2]


def test_a_delete_file_holds_sorted_positions_of_one_data_file(lake):
    table = new_table(lake, frame(*((i % 7, "a", 1.0) for i in range(100))), **MERGE)
    table.delete("id = 3 or id = 1")
    (file,) = delete_files(table)
    (task,) = table.scan().plan_files()
    assert file.content is DataFileContent.POSITION_DELETES
    assert file.referenced_data_file == task.file.file_path
    for bounds in (file.lower_bounds, file.upper_bounds):
        assert bounds[2147483546] == task.file.file_path.encode()
    found = pq.read_table(file.file_path.removeprefix("file:"))
    assert found["pos"].to_pylist() == [i for i in range(100) if i % 7 in {1, 3}]
    assert set(found["file_path"].to_pylist()) == {task.file.file_path}
    ids = [f.metadata[b"PARQUET:field_id"] for f in found.schema]
    assert ids == [b"2147483546", b"2147483545"]
    assert [f.nullable for f in found.schema] == [False, False]


def test_a_delete_file_of_a_partition_is_sorted_by_file_and_position(lake):
    parts = [frame(*((i, s, 1.0) for i in range(n, n + 4) for s in "ab")) for n in (0, 4, 8)]
    table = new_table(
        lake,
        *parts,
        partition=[("s", "identity")],
        write_delete_granularity="partition",
        **MERGE,
    )
    table.delete("id in (1, 2, 6)")
    found = delete_files(table)
    assert [f.record_count for f in found] == [3, 3]
    assert {f.partition for f in found} == {("a",), ("b",)}
    for file in found:
        assert file.referenced_data_file is None
        listed = pq.read_table(file.file_path.removeprefix("file:")).to_pylist()
        assert listed == sorted(listed, key=lambda r: (r["file_path"], r["pos"]))
        assert file.lower_bounds[2147483546].decode() == listed[0]["file_path"]
        assert file.upper_bounds[2147483546].decode() == listed[-1]["file_path"]
    assert len(rows(table)) == 18


def test_an_upsert_that_merges_on_read_writes_only_what_changed(lake):
    table = new_table(lake, frame(*((i, "a", 1.0) for i in range(100))), **MERGE)
    before = live_files(table)
    result = table.upsert(frame((7, "new", 1.0), (8, "a", 1.0), (200, "in", 1.0)), ["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    assert before < live_files(table)
    assert [r for r in rows(table) if r[1] != "a"] == [(200, "in", 1.0), (7, "new", 1.0)]
    assert summary(table)["added-records"] == "2"
    assert summary(table)["operation"] == "overwrite"
    table.delete("id = 7")
    assert len(rows(table)) == 100


def test_a_merge_on_read_delete_that_fails_leaves_no_file(lake, monkeypatch):
    table = new_table(lake, *(frame((i, "a", 1.0), (i + 10, "b", 2.0)) for i in range(3)), **MERGE)
    before = data_files(table)
    taken = itertools.count()
    write = PositionDeleteWriter.add

    def failing(writer, file, positions):
        if next(taken) == 2:
            raise FileIOError("disk full")
        write(writer, file, positions)

    monkeypatch.setattr(PositionDeleteWriter, "add", failing)
    with pytest.raises(FileIOError, match="disk full"):
        table.delete("s = 'a'")
    assert data_files(table) == before


@pytest.mark.parametrize(
    "properties",
    [
        {"write.delete.granularity": "row"},
        {"write.delete.format.default": "csv"},
        {"format-version": "1"},
    ],
    ids=str,
)
def test_delete_files_that_cannot_be_written_are_refused_first(lake, properties):
    table = table_of_a_careless_writer(lake, **properties, **{"write.delete.mode": "merge-on-read"})
    table.append(frame((1, "a", 1.0), (2, "b", 2.0)))
    with pytest.raises((ConfigurationError, UnsupportedError)):
        table.delete("id = 1")
    assert len(table.refresh().snapshots()) == 1


@pytest.mark.parametrize("properties", [{}, MERGE], ids=["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("raced", [False, True])
def test_several_operations_in_a_transaction_see_each_other_or_none_happens(
    lake, properties, raced
):
    table = new_table(lake, frame((1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0)), **properties)
    before = data_files(table)
    transaction = table.transaction()
    transaction.delete("id = 1")
    transaction.append(frame((10, "x", 1.0), (11, "y", 1.0)))
    assert transaction.upsert(frame((2, "B", 2.0), (10, "X", 1.0)), ["id"]).rows_updated == 2
    transaction.overwrite(frame((30, "z", 0.0)), "id = 11")
    if raced:
        lake.load_table("db.t").append(frame((99, "other", 0.0)))
        with pytest.raises(CommitFailedError):
            transaction.commit_transaction()
        assert len(data_files(table) - before) == 1
        assert len(rows(table.refresh())) == 4
    else:
        transaction.commit_transaction()
        assert [r[:2] for r in rows(table)] == [(10, "X"), (2, "B"), (3, "c"), (30, "z")]
        assert live_files(table) <= data_files(table)


@pytest.mark.parametrize("properties", [{}, MERGE], ids=["copy-on-write", "merge-on-read"])
def test_rows_that_equality_deletes_removed_stay_away_and_may_come_back(lake, properties):
    table = new_table(lake, frame(*((i, "a", 1.0) for i in range(10))), **properties)
    path = f"{table.location()}/data/equal.parquet"
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    pq.write_table(pa.table([[3, 4, 5]], schema=schema), path.removeprefix("file:"))
    deletes = DataFile(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=path,
        record_count=3,
        file_size_in_bytes=table.io.size(path),
        equality_ids=(1,),
    )
    table.commit(RowDelta(table.io).add_deletes(deletes))
    table.delete("id in (1, 3)")
    result = table.upsert(frame((2, "b", 1.0), (4, "back", 1.0)), ["id"])
    assert (result.rows_updated, result.rows_inserted) == (1, 1)
    found = {row["id"]: row["s"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {0: "a", 2: "b", 4: "back", 6: "a", 7: "a", 8: "a", 9: "a"}


def test_frames_of_pandas_and_polars_and_batches_are_taken(lake):
    table = new_table(lake, frame((1, "a", 1.0)))
    new = frame((1, "b", 1.0), (2, "c", None))
    table.overwrite(new.to_batches()[0])
    table.upsert(pl.DataFrame({"id": [2, 3], "s": ["C", "d"], "x": [None, 0.5]}), ["id"])
    table.overwrite(frame((3, "e", 0.5)).to_pandas(), "id = 3")
    assert rows(table) == [(1, "b", 1.0), (2, "C", None), (3, "e", 0.5)]


def test_rows_for_a_transaction_that_is_over_leave_no_file(lake):
    table = new_table(lake, frame((1, "a", 0.5)))
    before = data_files(table)
    transaction = table.transaction()
    transaction.abandon()
    with pytest.raises(ValidationError, match="transaction is over"):
        transaction.append(frame((2, "b", 0.5)))
    assert data_files(table) == before


def test_files_of_a_change_that_was_committed_after_all_are_never_deleted(lake):
    table = new_table(lake, frame((1, "a", 0.5)))
    change = append_rows(WriteTarget(table.io, table.metadata), frame((2, "b", 0.5)))
    lake.load_table("db.t").commit(change.producer)  # as a commit of unknown outcome may end
    with pytest.raises(ValidationError, match="committed already"):
        table.commit(change)
    assert table.refresh().scan().to_arrow().num_rows == 2


def test_appends_merge_manifests_when_there_are_enough(lake):
    """As `commit.manifest.min-count-to-merge` says; a writer that lost the race merges anew."""
    some = frame((1, "a", 1.0), (2, "b", 2.0), (3, "c", 3.0))
    merging = {"commit.manifest.min-count-to-merge": "3"}
    for name, properties, counts in (
        ("merged", merging, [1, 2, 1, 2, 1]),
        ("never", merging | {"commit.manifest-merge.enabled": "false"}, [1, 2, 3, 4, 5]),
    ):
        table = lake.create_table(f"db.{name}", SCHEMA, properties=properties)
        stale = lake.load_table(f"db.{name}")
        found = []
        for number in range(5):
            # every second writer does not know of the one before
            writer = stale if number % 2 else table
            writer.append(some)
            current = lake.load_table(f"db.{name}")
            found.append(len(current.inspect.manifests()))
            if number % 2:
                stale, table = current, lake.load_table(f"db.{name}")
        assert found == counts
        assert lake.load_table(f"db.{name}").scan().count() == 15
        peers = StaticTable.from_metadata(lake.load_table(f"db.{name}").metadata_location)
        assert sorted(peers.scan().to_arrow()["id"].to_pylist()) == sorted([1, 2, 3] * 5)
