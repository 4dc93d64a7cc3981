"""Row lineage over files of every format: what rows state, and what they inherit."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icecomb.format.errors import SchemaError, UnsupportedError
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import LINEAGE, with_lineage
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO

SPEC = PartitionSpec(0, ())
ROW_ID, LAST_UPDATED = 2147483540, 2147483539
N = None


@pytest.fixture
def metadata(tmp_path):
    schema = Schema((NestedField(1, "id", LongType()),))
    made = new_table_metadata(schema, SPEC, UNSORTED_SORT_ORDER, str(tmp_path), {})
    return replace(made, format_version=3)


def column(name, values):
    return name, pa.array(values, pa.int64())


@pytest.fixture
def moved(write_file):
    """Four rows, of which two state their id, and two when they were updated."""
    columns = {
        1: column("id", [0, 1, 2, 3]),
        ROW_ID: column("_row_id", [N, 5, N, 7]),
        LAST_UPDATED: column("_last_updated_sequence_number", [N, N, 2, 3]),
    }
    return write_file("moved", columns)


def read(metadata, file, row_filter=None, columns=("id", *(f.name for f in LINEAGE))):
    scan = TableScan(metadata, FileIO(), row_filter, columns)
    task = FileScanTask(file, residual=scan.bound_filter(), spec=SPEC)
    reader = ArrowScan(metadata, FileIO(), scan.projection(), batch_size=6)
    found = reader.to_table([task])
    assert found.schema == reader.schema
    return list(zip(*found.to_pydict().values(), strict=True))


def test_rows_inherit_what_their_file_does_not_state(metadata, moved):
    """Spec: Row Lineage."""
    file = replace(moved, first_row_id=100, sequence_number=9)
    assert read(metadata, file) == [(0, 100, 9), (1, 5, 9), (2, 102, 2), (3, 7, 3)]


def test_without_a_first_row_id_there_is_no_lineage_whatever_the_file_states(metadata, moved):
    file = replace(moved, sequence_number=9)
    assert read(metadata, file) == [(number, N, N) for number in range(4)]
    assert read(metadata, file, "_row_id is null and id = 1") == [(1, N, N)]
    assert read(metadata, file, "_row_id > 0") == []


def test_ids_count_the_positions_in_the_whole_file(metadata, write_file):
    file = write_file("many", {1: column("id", range(1000))})
    file = replace(file, first_row_id=2000, sequence_number=4)
    assert read(metadata, file) == [(number, 2000 + number, 4) for number in range(1000)]
    assert read(metadata, file, "id in (3, 500, 999)") == [
        (number, 2000 + number, 4) for number in (3, 500, 999)
    ]


def test_parts_of_a_file_have_the_ids_of_the_whole(metadata, write_file):
    file = write_file("parts", {1: column("id", range(1000))})
    task = FileScanTask(replace(file, first_row_id=2000, sequence_number=4), spec=SPEC)
    parts = list(task.split(task.length // 5))
    assert len(parts) >= 5
    schema = TableScan(metadata, FileIO(), selected_fields=("id", "_row_id")).projection()
    reader = ArrowScan(metadata, FileIO(), schema, batch_size=6)
    found = [reader.to_table([part]).to_pydict() for part in reversed(parts)]
    assert sum(len(part["id"]) for part in found) == 1000
    assert all(part["_row_id"] == [2000 + n for n in part["id"]] for part in found)


def test_rows_are_found_by_their_lineage(metadata, moved, write_file):
    file = replace(moved, first_row_id=100, sequence_number=9)
    assert read(metadata, file, "_row_id = 102", ["id"]) == [(2,)]
    assert read(metadata, file, "_row_id in (7, 100)", ["id"]) == [(0,), (3,)]
    assert read(metadata, file, "_last_updated_sequence_number >= 3", ["id"]) == [(0,), (1,), (3,)]
    assert read(metadata, file, "_row_id is null", ["id"]) == []
    new = write_file("new", {1: column("id", range(20))})
    new = replace(new, first_row_id=100, sequence_number=9)
    assert read(metadata, new, "_row_id = 119", ["id"]) == [(19,)]
    assert read(metadata, new, "_row_id = 120", ["id"]) == []
    assert read(metadata, new, "_row_id < 100", ["id"]) == []
    assert read(metadata, new, "_last_updated_sequence_number != 9", ["id"]) == []


@pytest.mark.parametrize("name", ["_row_id", "_last_updated_sequence_number"])
def test_before_version_3_lineage_is_refused_by_name(metadata, name):
    older = replace(metadata, format_version=2)
    with pytest.raises(UnsupportedError, match=f"no column {name}: its format version is 2"):
        TableScan(older, FileIO(), selected_fields=(name,)).projection()
    with pytest.raises(UnsupportedError, match=f"no column {name}: its format version is 2"):
        TableScan(older, FileIO(), f"{name} = 1").bound_filter()


def test_a_column_of_the_table_hides_lineage_and_its_rows_cannot_be_moved(metadata, write_file):
    schema = Schema((NestedField(1, "_row_id", StringType()),))
    own = replace(metadata, schemas=(schema,), current_schema_id=schema.schema_id)
    file = write_file("own", {1: ("_row_id", pa.array(["a", "b"]))})
    assert read(own, replace(file, first_row_id=8), "_row_id = 'b'", ["_row_id"]) == [("b",)]
    with pytest.raises(SchemaError, match="'_row_id' has the name of a column of row lineage"):
        with_lineage(schema)
