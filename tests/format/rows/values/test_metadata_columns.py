"""Columns that stand in no file, over files of every format."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import GreaterThan
from icecomb.format.manifests.manifest import DataFileContent
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import METADATA_COLUMNS
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import IntegerType, LongType, NestedField, StringType, UUIDType
from icecomb.format.storage.file_io import FileIO

SCHEMA = Schema(
    (
        NestedField(1, "id", LongType()),
        NestedField(2, "s", StringType()),
        NestedField(3, "p", IntegerType()),
        NestedField(4, "u", UUIDType()),
    )
)
BY_BUCKET = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("bucket[4]"), "id_bucket"),))
BY_P_AND_U = PartitionSpec(
    1,
    (
        PartitionField(3, 1001, parse_transform("identity"), "p"),
        PartitionField(4, 1002, parse_transform("identity"), "u"),
    ),
)
PATH_ID, POSITION_ID = 2147483546, 2147483545


@pytest.fixture
def metadata(tmp_path):
    made = new_table_metadata(SCHEMA, BY_BUCKET, UNSORTED_SORT_ORDER, str(tmp_path), {})
    return replace(made, partition_specs=(BY_BUCKET, BY_P_AND_U), default_spec_id=1)


@pytest.fixture
def tasks(write_file):
    """Twenty rows of each spec; of the first file, a position and a key are deleted."""

    def rows(first):
        numbers = range(first, first + 20)
        return {1: ("id", pa.array(numbers)), 2: ("s", pa.array([f"v{i}" for i in numbers]))}

    one = write_file("one", rows(0), partition=(3,))
    two = write_file("two", rows(20), partition=(7, b"0123456789abcdef"), spec_id=1)
    path = ("file_path", pa.array([one.file_path, one.file_path]))
    positions = write_file("positions", {PATH_ID: path, POSITION_ID: ("pos", pa.array([2, 9]))})
    keys = write_file("keys", {2: ("s", pa.array(["v5", "v9"]))})
    deletes = (
        replace(positions, content=DataFileContent.POSITION_DELETES),
        replace(keys, content=DataFileContent.EQUALITY_DELETES, equality_ids=(2,)),
    )
    return [FileScanTask(one, deletes, spec=BY_BUCKET), FileScanTask(two, spec=BY_P_AND_U)]


def read(metadata, tasks, *names):
    projected = TableScan(metadata, FileIO(), selected_fields=names).projection()
    scan = ArrowScan(metadata, FileIO(), projected, batch_size=6)
    found = scan.to_table(tasks)
    assert scan.count(tasks) == found.num_rows
    assert found.schema == scan.schema
    return found


def test_ids_and_types_are_those_of_the_specification():
    """Spec: Reserved Field IDs."""
    assert {name: (f.field_id, str(f.field_type)) for name, f in METADATA_COLUMNS.items()} == {
        "_file": (2147483646, "string"),
        "_pos": (2147483645, "long"),
        "_deleted": (2147483644, "boolean"),
        "_spec_id": (2147483643, "int"),
        "_partition": (2147483642, "struct<>"),
        "_row_id": (2147483540, "long"),
        "_last_updated_sequence_number": (2147483539, "long"),
    }


def test_a_row_says_where_it_lies(metadata, tasks):
    found = read(metadata, tasks, "_spec_id", "_pos", "_file", "id")
    live = [i for i in range(20) if i not in {2, 5, 9}]
    assert found["id"].to_pylist() == [*live, *range(20, 40)]
    assert found["_pos"].to_pylist() == [*live, *range(20)]
    assert found["_spec_id"].to_pylist() == [0] * 17 + [1] * 20
    assert set(found["_file"].to_pylist()) == {task.file.file_path for task in tasks}


def test_deleted_rows_are_kept_and_marked_when_that_is_asked(metadata, tasks):
    found = read(metadata, tasks, "_deleted", "id")
    assert found["id"].to_pylist() == list(range(40))
    marked = [i for i, gone in enumerate(found["_deleted"].to_pylist()) if gone]
    assert marked == [2, 5, 9]
    alone = read(metadata, tasks, "_deleted")
    assert alone["_deleted"] == found["_deleted"]


def test_a_filter_selects_among_deleted_rows_too(metadata, tasks):
    residual = bind(SCHEMA, GreaterThan("id", 4))
    filtered = [FileScanTask(t.file, t.delete_files, residual, t.spec) for t in tasks]
    found = read(metadata, filtered, "_deleted", "_pos")
    assert found["_pos"].to_pylist() == [*range(5, 20), *range(20)]
    assert [i for i, gone in enumerate(found["_deleted"].to_pylist()) if gone] == [0, 4]


def test_partitions_of_all_specs_have_one_type(metadata, tasks):
    found = read(metadata, tasks, "_partition", "id")["_partition"]
    assert [f.name for f in found.type] == ["id_bucket", "p", "u"]
    values = found.to_pylist()
    assert values[0]["id_bucket"] == 3
    assert values[0]["p"] is None
    assert values[0]["u"] is None
    assert values[-1]["id_bucket"] is None
    assert values[-1]["p"] == 7
    assert values[-1]["u"].bytes == b"0123456789abcdef"


def test_without_partitions_the_partition_is_null(write_file, tmp_path):
    spec = PartitionSpec(0, ())
    plain = new_table_metadata(SCHEMA, spec, UNSORTED_SORT_ORDER, str(tmp_path), {})
    file = write_file("f", {1: ("id", pa.array([1, 2]))})
    found = read(plain, [FileScanTask(file, spec=spec)], "_partition", "id")
    assert found.to_pydict() == {"id": [1, 2], "_partition": [None, None]}


def test_everything_and_metadata_columns_can_be_selected_together(metadata, tasks):
    found = read(metadata, tasks, "*", "_pos")
    assert found.column_names == ["id", "s", "p", "u", "_pos"]


def test_a_column_of_the_table_hides_a_metadata_column(tmp_path):
    schema = Schema((NestedField(1, "_pos", StringType()),))
    own = new_table_metadata(schema, PartitionSpec(0, ()), UNSORTED_SORT_ORDER, str(tmp_path), {})
    scan = TableScan(own, FileIO(), selected_fields=("_pos",))
    assert scan.projection().fields == schema.fields
