"""Plans as Arrow batches say the same as plans as tasks."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

import icecomb.format.scan.plan_batch
from icecomb.format.errors import CorruptFileError, ExpressionError, ValidationError
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.expressions.forms.json_form import to_json
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.rows.values import scan_task
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.scan.incremental_scan import IncrementalAppendScan
from icecomb.format.scan.plan_batch import _parts
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate,
    SetDefaultSpecUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.single_value import to_bytes
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import DateType, LongType, NestedField
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "day", DateType())))
BY_DAY = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "day"),))
BY_ID = PartitionSpec(1, (PartitionField(1, 1001, parse_transform("bucket[4]"), "id_bucket"),))
FILTERS = [None, "id < 15", "day = '1970-01-03' and id > 5", "day is null", "id > 1000", "false"]


def new_table(tmp_path, spec=BY_DAY, version=2):
    properties = {"format-version": str(version)}
    return new_table_metadata(SCHEMA, spec, UNSORTED_SORT_ORDER, str(tmp_path / "t"), properties)


def file(name, partition=(1,), low=0, high=9, **fields) -> DataFile:
    return DataFile(
        **{
            "file_path": f"/t/data/{name}",
            "partition": partition,
            "record_count": 10,
            "file_size_in_bytes": 1000,
            "value_counts": {1: 10},
            "null_value_counts": {1: 0},
            "lower_bounds": {1: to_bytes(LongType(), low)},
            "upper_bounds": {1: to_bytes(LongType(), high)},
            **fields,
        }
    )


def commit(base, operation):
    return update_table_metadata(base, operation.apply(base).updates)


def append(base, *files):
    operation = FastAppend(IO)
    for added in files:
        operation.append_data_file(added)
    return commit(base, operation)


def delete(base, *files):
    operation = RowDelta(IO)
    for added in files:
        operation.add_deletes(added)
    return commit(base, operation)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Two specs, both kinds of delete files, several manifests."""
    table = new_table(tmp_path_factory.mktemp("plan"))
    equality = {"content": DataFileContent.EQUALITY_DELETES, "equality_ids": (1,)}
    position = {"content": DataFileContent.POSITION_DELETES}
    days = (1, 2, None, 2)
    for n, day in enumerate(days):
        files = [
            file(f"{n}-{m}", (day,), m * 10, m * 10 + 9, split_offsets=(4, 400)) for m in range(3)
        ]
        table = append(table, *files)
    table = delete(table, file("eq", (2,), **equality), file("pos", (1,), **position))
    one = file("one", (2,), **position, referenced_data_file="/t/data/1-1", key_metadata=b"k")
    table = delete(table, one)
    changed = (AddPartitionSpecUpdate(BY_ID), SetDefaultSpecUpdate(-1))
    table = update_table_metadata(table, changed)
    later = {"spec_id": 1, "file_format": FileFormat.ORC, "key_metadata": b"secret"}
    table = append(table, file("b1", (3,), 0, 40, **later), file("b2", (0,), 5, 90, **later))
    return delete(table, file("eq2", (3,), spec_id=1, **equality))


def as_rows(plan):
    """A plan as rows in which places stand for themselves."""
    deletes = plan.delete_files["file_path"].to_pylist()
    found = []
    for batch in plan:
        assert batch.schema == plan.schema
        batch.validate(full=True)
        for row in batch.to_pylist():
            row["delete_files"] = [deletes[place] for place in row["delete_files"]]
            row["residual"] = json.loads(row["residual"] or "true")
            found.append(row)
    return found


def expected_rows(scan, split_size=None):
    found = []
    for whole in scan.plan_files():
        for task in [whole] if split_size is None else whole.split(split_size):
            data = task.file
            partition = dict.fromkeys(("day", "id_bucket"))
            if data.spec_id == 0 and data.partition[0] is not None:
                partition["day"] = pa.scalar(data.partition[0], pa.date32()).as_py()
            elif data.spec_id == 1:
                partition["id_bucket"] = data.partition[0]
            found.append(
                {
                    "file_path": data.file_path,
                    "file_format": data.file_format.value,
                    "file_size_in_bytes": data.file_size_in_bytes,
                    "record_count": data.record_count,
                    "spec_id": data.spec_id,
                    "partition": partition,
                    "key_metadata": data.key_metadata,
                    "start": task.start,
                    "length": task.length,
                    "delete_files": [deletes.file_path for deletes in task.delete_files],
                    "residual": to_json(task.residual),
                }
            )
    return found


@pytest.mark.parametrize("row_filter", FILTERS)
@pytest.mark.parametrize("split_size", [None, 300, 10_000])
def test_batches_say_what_tasks_say(table, row_filter, split_size):
    scan = TableScan(table, IO, row_filter)
    rows = as_rows(scan.plan_batches(split_size))
    numbers = {row["file_path"]: row.pop("sequence_number") for row in rows}
    assert rows == expected_rows(scan, split_size)
    sequence = {"/t/data/0-0": 1, "/t/data/1-1": 2, "/t/data/2-0": 3, "/t/data/b1": 7}
    assert all(numbers[path] == number for path, number in sequence.items() if path in numbers)


def test_the_filters_of_these_tests_leave_different_things(table):
    counts = [len(as_rows(TableScan(table, IO, one).plan_batches())) for one in FILTERS]
    assert counts == [14, 10, 8, 5, 0, 0]
    (residuals,) = {
        tuple(batch["residual"].dictionary.to_pylist())
        for batch in TableScan(table, IO, "day = '1970-01-03' and id > 5").plan_batches()
        if batch["spec_id"][0].as_py() == 0
    }
    # the partition answers for the day
    assert [json.loads(text) for text in residuals] == [{"type": "gt", "term": "id", "value": 5}]


def test_the_delete_files_are_described_once(table):
    plan = TableScan(table, IO).plan_batches()
    found = {row["file_path"]: row for row in plan.delete_files.to_pylist()}
    assert sorted(found) == [f"/t/data/{name}" for name in ("eq", "eq2", "one", "pos")]
    assert found["/t/data/one"] == {
        "content": 1,
        "file_path": "/t/data/one",
        "file_format": "PARQUET",
        "spec_id": 0,
        "record_count": 10,
        "file_size_in_bytes": 1000,
        "equality_ids": None,
        "referenced_data_file": "/t/data/1-1",
        "key_metadata": b"k",
        "content_offset": None,
        "content_size_in_bytes": None,
    }
    assert found["/t/data/eq2"]["equality_ids"] == [1]
    assert (found["/t/data/eq2"]["content"], found["/t/data/eq2"]["spec_id"]) == (2, 1)


def test_no_object_is_made_for_a_data_file(table, monkeypatch):
    plan = TableScan(table, IO, "id < 15").plan_batches(300)

    def refused(*_, **__):
        raise AssertionError("a data file was made")

    monkeypatch.setattr("icecomb.format.manifests.columns.DataFile", refused)
    assert sum(batch.num_rows for batch in plan) == 24


def test_batches_are_bounded_and_come_as_a_stream(table, monkeypatch):
    monkeypatch.setattr(icecomb.format.scan.plan_batch, "MOST_FILES", 2)
    plan = TableScan(table, IO).plan_batches()
    assert max(batch.num_rows for batch in plan) == 2
    reader = plan.to_reader()
    assert reader.schema == plan.schema
    assert reader.read_all().num_rows == 14
    # read once more, by another library
    frame = pl.from_arrow(plan.to_reader())
    assert sorted(frame["file_path"]) == sorted(row["file_path"] for row in as_rows(plan))


def test_manifests_are_read_when_their_batches_are(tmp_path):
    table = new_table(tmp_path)
    for n in range(20):
        table = append(table, file(str(n)))
    oldest = read_manifests(IO, table.current_snapshot())[-1].manifest_path
    IO.delete([oldest])
    batches = iter(TableScan(table, IO).plan_batches())
    assert next(batches)["file_path"].to_pylist() == ["/t/data/19"]
    with pytest.raises((FileNotFoundError, CorruptFileError), match=oldest):
        list(batches)


def test_a_table_without_partitions_has_no_partition_column(tmp_path):
    table = append(new_table(tmp_path, UNPARTITIONED_PARTITION_SPEC), file("a", ()))
    plan = TableScan(table, IO).plan_batches()
    assert "partition" not in plan.schema.names
    (row,) = as_rows(plan)
    assert (row["file_path"], row["start"], row["length"]) == ("/t/data/a", 0, 1000)


@pytest.mark.parametrize("row_filter", [None, "id = 1"])
def test_an_empty_table_has_an_empty_plan(tmp_path, row_filter):
    plan = TableScan(new_table(tmp_path), IO, row_filter).plan_batches()
    assert plan.to_reader().read_all().num_rows == 0
    assert plan.delete_files.num_rows == 0
    with pytest.raises(ExpressionError, match="Cannot find column"):
        TableScan(new_table(tmp_path), IO, "nope = 1").plan_batches()


def test_files_of_format_version_1_are_planned(tmp_path):
    table = append(new_table(tmp_path, version=1), file("a", (3,)))
    (row,) = as_rows(TableScan(table, IO).plan_batches())
    assert row["sequence_number"] == 0
    assert str(row["partition"]["day"]) == "1970-01-04"


@pytest.mark.parametrize(("limit", "files"), [(0, 0), (5, 1), (10, 1), (11, 2), (25, 3)])
def test_a_limit_ends_the_plan(tmp_path, limit, files):
    table = new_table(tmp_path)
    for n in range(4):
        table = append(table, file(str(n)))
    scan = TableScan(table, IO, limit=limit)
    assert len(as_rows(scan.plan_batches())) == len(list(scan.plan_files())) == files


def test_an_incremental_scan_has_batches_too(table):
    ids = [snapshot.snapshot_id for snapshot in table.snapshots]
    scan = IncrementalAppendScan(table, IO, "id < 15", from_snapshot_id=ids[1])
    rows = as_rows(scan.plan_batches())
    assert [row["file_path"] for row in rows] == [task.file.file_path for task in scan.plan_files()]
    assert len(rows) == 6
    assert scan.plan_batches().delete_files.num_rows == 0


def test_the_size_of_parts_is_positive(table):
    with pytest.raises(ValidationError, match="split_size is a positive number"):
        TableScan(table, IO).plan_batches(0)


FARTHEST = [-(1 << 63), (1 << 63) - 1]
FILES = st.tuples(
    st.integers(0, 60),
    st.none() | st.lists(st.integers(-2, 70) | st.sampled_from(FARTHEST), max_size=5),
    st.sampled_from(list(FileFormat)),
)


@given(st.lists(FILES, min_size=1, max_size=8), st.integers(1, 70), st.sampled_from([3, 10_000]))
def test_parts_are_those_of_tasks(files, target, most):
    with pytest.MonkeyPatch.context() as patch:
        for module in (scan_task, icecomb.format.scan.plan_batch):
            patch.setattr(module, "MOST_PARTS", most)
        compare_parts(files, target)


def compare_parts(files, target):
    sizes, offsets, formats = zip(*files, strict=True)
    made = icecomb.format.scan.plan_batch._splittable(
        pa.array([one.value for one in formats], pa.large_string())
    )
    arrays = pa.array(offsets, pa.large_list(pa.int64()))
    rows, starts, lengths = _parts(pa.array(sizes).to_numpy(), arrays, made, target)
    expected = [
        (row, task.start, task.length)
        for row, (size, split_offsets, file_format) in enumerate(files)
        for task in FileScanTask(
            replace(
                file("x"),
                file_size_in_bytes=size,
                split_offsets=None if split_offsets is None else tuple(split_offsets),
                file_format=file_format,
            ),
            residual=AlwaysTrue(),
        ).split(target)
    ]
    assert list(zip(rows.tolist(), starts.tolist(), lengths.tolist(), strict=True)) == expected
