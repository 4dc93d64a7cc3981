"""Tables that were replaced by columns of other types: their ids, and what reads and writes the old ones."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icecomb.format.errors import ValidationError
from icecomb.format.expressions.expression import EqualTo
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.scan.file_aggregates import Aggregate, AggregateFunction
from icecomb.format.scan.top_rows import TopRows
from icecomb.format.spec.change.update import (
    AddSchemaUpdate,
    Changes,
    RemoveSnapshotRefUpdate,
    SetCurrentSchemaUpdate,
)
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    DateType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

OLD = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "x": [1.0, 2.0, 300.0]})
NEW = pa.table({"id": pa.array([4, 5, 6], pa.int64()), "x": pa.array([7, 800, 9], pa.int64())})
LONGS = Schema((NestedField(1, "id", LongType()), NestedField(2, "x", LongType())))


class SameIds:
    """A replacement as Iceberg Java's, under which columns keep their ids whatever their types."""

    starting_point = None
    writes_files = False

    def __init__(self, schema):
        self.schema = schema

    def apply(self, base):
        removed = (RemoveSnapshotRefUpdate("main"),) if base.current_snapshot_id else ()
        return Changes((), (*removed, AddSchemaUpdate(self.schema), SetCurrentSchemaUpdate()))

    def clean_up(self, committed):
        pass


@pytest.fixture(params=["1", "2"])
def old(request, lake):
    """A table with a branch, a tag, and a snapshot that is staged."""
    table = lake.create_table("db.t", OLD.schema, properties={"format-version": request.param})
    table.append(OLD)
    number = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_tag(number, "old").create_branch(number, "b")
    with table.update_properties() as update:
        update.set("write.wap.enabled", "true")
    table.append(OLD.slice(0, 1), snapshot_properties={"wap.id": "w"})
    return table


@pytest.fixture(params=["by us", "by Iceberg Java"])
def replaced(request, lake, old):
    """That table with other values in the column, whose id is a new one, or the same."""
    if request.param == "by us":
        old = lake.replace_table("db.t", LONGS)
    else:
        old.commit(SameIds(LONGS))
    old.append(NEW)
    return old


def read(scan):
    return scan.to_arrow().sort_by("id").to_pydict()


def staged_id(table):
    return next(s.snapshot_id for s in table.snapshots() if s.summary.get("wap.id") == "w")


@pytest.mark.parametrize("ref", ["old", "b"])
def test_a_tag_and_a_branch_of_the_old_table_are_read_with_its_columns(replaced, ref):
    scan = replaced.scan().use_ref(ref)
    assert read(scan) == OLD.to_pydict()
    assert read(scan.filter("x > 100")) == OLD.slice(2).to_pydict()
    assert read(scan.filter("x < 2.5")) == OLD.slice(0, 2).to_pydict()
    assert read(scan.filter("x > 1.5").select("id")) == {"id": [2, 3]}
    assert scan.filter("x > 1.5").count() == 2
    assert read(replaced.scan()) == NEW.to_pydict()
    assert read(replaced.scan("x > 100")) == NEW.slice(1, 1).to_pydict()


@pytest.mark.parametrize("ref", ["old", "b"])
def test_the_first_rows_and_the_extremes_are_those_of_the_old_values(replaced, ref):
    for scan, rows, first in (
        (replaced.scan().use_ref(ref), OLD, 1.0),
        (replaced.scan(), NEW, 7),
    ):
        number = scan.schema().find_field("x").field_id
        tasks = list(scan.plan_top_files(TopRows(number, False, False, 1)))
        assert min(scan.to_arrow(tasks).column("x").to_pylist()) == first
        asked = [Aggregate(function, number) for function in AggregateFunction]
        known = scan.known_aggregates(asked)
        values = rows.column("x").to_pylist()
        assert known in (None, [(len(values), min(values), max(values))])


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.delete("x > 100", branch="b"),
        lambda t: t.delete("id = 1", branch="b"),
        lambda t: t.append(NEW, branch="b"),
        lambda t: t.overwrite(NEW, branch="b"),
        lambda t: t.upsert(NEW, join_cols=["id"], branch="b"),
        lambda t: t.maintenance.rewrite_data_files(branch="b", options={"rewrite-all": "true"}),
        lambda t: t.publish_changes("w"),
        lambda t: t.manage_snapshots().cherry_pick(staged_id(t)).commit(),
        lambda t: t.manage_snapshots().set_current_snapshot(ref_name="b").commit(),
        lambda t: t.manage_snapshots().replace_branch(t.refs()["b"].snapshot_id, "main").commit(),
    ],
    ids=range(10),
)
def test_the_old_rows_are_not_changed_or_published_under_the_new_columns(replaced, change):
    before = replaced.refs()
    with pytest.raises(ValidationError, match=r"'x' is long .*double") as caught:
        change(replaced)
    assert caught.value.hint
    replaced.refresh()
    assert replaced.refs() == before
    assert read(replaced.scan()) == NEW.to_pydict()
    assert read(replaced.scan().use_ref("b")) == OLD.to_pydict()


def test_an_empty_replaced_table_takes_no_old_rows_either(lake, old):
    table = lake.replace_table("db.t", LONGS)
    for move in (
        lambda: table.publish_changes("w"),
        lambda: table.manage_snapshots().fast_forward("main", "b").commit(),
    ):
        with pytest.raises(ValidationError, match=r"'x' is long .*double"):
            move()
    table.refresh()
    assert table.current_snapshot() is None


def test_a_late_append_of_the_old_columns_is_refused(lake, old):
    def late():
        yield from OLD.slice(0, 1).to_batches()
        lake.replace_table("db.t", LONGS)
        yield from OLD.slice(1).to_batches()

    with pytest.raises(ValidationError, match=r"'x' is long .*double"):
        old.append(pa.RecordBatchReader.from_batches(OLD.schema, late()))
    assert lake.load_table("db.t").current_snapshot() is None


def test_a_column_that_goes_on_keeps_branches_open_for_writers(lake, old):
    table = lake.replace_table("db.t", OLD.schema.append(pa.field("y", pa.string())))
    table.append(OLD, branch="b")
    assert table.scan().use_ref("b").to_arrow().num_rows == 6
    assert table.scan().use_ref("b").to_arrow().column("y").null_count == 6


def test_a_column_that_was_dropped_and_added_again_is_that_of_the_branch_too(lake, old):
    with old.update_schema() as update:
        update.delete_column("x")
    with old.update_schema() as update:
        update.add_column("x", LongType())
    old.append(NEW, branch="b")
    assert read(old.scan().use_ref("b"))["x"] == [None, None, None, 7, 800, 9]


def expire(table):
    now = dt.datetime.now(dt.timezone.utc)
    table.maintenance.expire_snapshots().older_than(now).retain_last(1).commit()


def test_it_stays_so_when_the_snapshots_that_both_had_expire(lake, old):
    """By the column's id (spec, Column Projection); Iceberg Java's schema of a branch, too."""
    with old.update_schema() as update:
        update.delete_column("x")
    with old.update_schema() as update:
        update.add_column("x", LongType())
    old.append(NEW, branch="b")
    old.append(NEW)
    expire(old)
    assert read(old.scan().use_ref("b"))["x"] == [None, None, None, 7, 800, 9]
    old.append(NEW, branch="b")
    old.manage_snapshots().replace_branch(old.refs()["b"].snapshot_id, "main").commit()
    rows = old.scan().to_arrow().sort_by("id")
    assert rows["x"].to_pylist() == [None, None, None, 7, 7, 800, 800, 9, 9]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_files_of_both_types_are_refused_by_name_where_the_column_is_read(lake, file_format):
    properties = {"write.format.default": file_format}
    table = lake.create_table("db.t", OLD.schema, properties=properties)
    table.append(OLD)
    first = table.current_snapshot().snapshot_id
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("x", LongType())
    table.append(NEW)
    for change in (
        lambda: table.scan().to_arrow(),
        lambda: table.scan("x > 100").count(),
        # no bound of the old type, taken for one of the new, leaves a file out or takes it whole
        lambda: table.scan("x < 5").to_arrow(),
        lambda: table.delete("x > 4000000000000000000"),
        lambda: table.delete("x > 100"),
        lambda: table.delete("id = 1"),
        lambda: table.upsert(NEW.slice(0, 1).set_column(0, "id", pa.array([1])), join_cols=["id"]),
        lambda: table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
    ):
        with pytest.raises(ValidationError, match=f"'x' is long, which files of snapshot {first} "):
            change()
    table.refresh()
    ids = table.scan("id > 2").select("id").to_arrow().column("id").to_pylist()
    assert sorted(ids) == [3, 4, 5, 6]
    assert table.scan().count() == 6
    assert read(table.scan(snapshot_id=first)) == OLD.to_pydict()
    table.overwrite(NEW)
    assert read(table.scan("x > 100")) == NEW.slice(1, 1).to_pydict()
    with table.manage_snapshots() as manage:
        manage.rollback_to_snapshot(first)
    assert table.scan().select("id").to_arrow().num_rows == 3


def test_rows_that_equality_deletes_removed_by_the_old_values_stay_away(lake):
    table = lake.create_table("db.t", OLD.schema)
    table.append(OLD)
    path = f"{table.location()}/data/equal.parquet"
    column = pa.field("x", pa.float64(), metadata={"PARQUET:field_id": "2"})
    pq.write_table(pa.table([[2.0]], schema=pa.schema([column])), path.removeprefix("file:"))
    deletes = DataFile(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=path,
        record_count=1,
        file_size_in_bytes=table.io.size(path),
        equality_ids=(2,),
    )
    table.commit(RowDelta(table.io).add_deletes(deletes))
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "b")
    table.commit(SameIds(LONGS))
    table.append(NEW)
    scan = table.scan().use_ref("b")
    assert read(scan)["x"] == [1.0, 300.0]
    assert read(scan.select("id")) == {"id": [1, 3]}
    assert scan.count() == 2


PARTITIONS = {
    "int to date": (pa.array([1, 2, 3], pa.int32()), [dt.date(2020, 1, 1)] * 3, DateType()),
    "string to date": (["a", "b", "c"], [dt.date(2020, 1, 1)] * 3, DateType()),
    "date to int": ([dt.date(2020, 1, d) for d in (1, 2, 3)], [1, 2, 3], IntegerType()),
    "long to string": (pa.array([1, 2, 3], pa.int64()), ["x", "y", "z"], StringType()),
    "string to long": (["x", "y", "z"], [1, 2, 3], LongType()),
}


@pytest.mark.parametrize("kind", PARTITIONS)
@pytest.mark.parametrize("version", ["1", "2"])
def test_partitions_by_the_other_type_are_not_taken_for_the_new_ones(lake, kind, version):
    before, after, new_type = PARTITIONS[kind]
    number = pa.array([1, 2, 3], pa.int64())
    old = pa.table({"id": number, "x": before})
    identity = PartitionField(2, 1000, parse_transform("identity"), "x")
    properties = {"format-version": version}
    table = lake.create_table(
        "db.t", old.schema, partition_spec=PartitionSpec(identity), properties=properties
    )
    table.append(old)
    first = table.current_snapshot().snapshot_id
    with table.manage_snapshots() as manage:
        manage.create_branch(first, "b")
    fields = (NestedField(1, "id", LongType()), NestedField(2, "x", new_type))
    table.commit(SameIds(Schema(fields)))
    new = pa.table({"id": number, "x": after}).cast(table.schema().as_arrow())
    table.append(new)
    for scan, rows in ((table.scan().use_ref("b"), old), (table.scan(), new)):
        assert read(scan) == rows.to_pydict()
        value = rows.column("x")[2].as_py()
        expected = [
            n for n, x in zip([1, 2, 3], rows.column("x").to_pylist(), strict=True) if x == value
        ]
        assert read(scan.filter(EqualTo("x", value)))["id"] == expected
        found = scan.select("id", "_partition").to_arrow().sort_by("id").column("_partition")
        assert [each["x"] for each in found.to_pylist()] == rows.column("x").to_pylist()
    shown = table.inspect
    of_new = set(new.column("x").to_pylist())
    for rows in (shown.files(), shown.entries(), shown.partitions()):
        partition = "data_file" if "data_file" in rows.column_names else "partition"
        values = [each.get("partition", each)["x"] for each in rows.column(partition).to_pylist()]
        assert set(values) == of_new
    for rows in (shown.all_files(), shown.all_data_files()):
        values = [each["x"] for each in rows.column("partition").to_pylist()]
        assert set(values) == {None, *of_new}
        bounds = [each["x"]["lower_bound"] for each in rows.column("readable_metrics").to_pylist()]
        assert set(bounds) == {None, *of_new}
    (summary,) = (
        row["partition_summaries"][0]
        for row in shown.all_manifests().to_pylist()
        if row["added_snapshot_id"] == first
    )
    assert summary["lower_bound"] == str(min(old.column("x").to_pylist()))
    assert shown.partitions(snapshot_id=first).column("record_count").to_pylist() == [3]
