from __future__ import annotations

import uuid
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from icecomb.format.errors import CorruptFileError, UnsupportedError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import GreaterThan
from icecomb.format.input_limit import UNPACKED
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.arrow_schema import schema_to_pyarrow
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import (
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
    VariantType,
)
from icecomb.format.storage.file_io import FileIO

NAN = float("nan")
FIELDS = (
    NestedField(1, "id", LongType()),
    NestedField(2, "name", StringType()),
    NestedField(3, "d", DoubleType()),
    NestedField(4, "dec", DecimalType(9, 2)),
    NestedField(5, "u", UUIDType()),
    NestedField(6, "st", StructType((NestedField(7, "x", LongType()),))),
)
SCHEMA = Schema(FIELDS)


def write(folder, name, rows, fields, *, equality_ids=None):
    arrow = schema_to_pyarrow(Schema(tuple(fields)))
    columns = []
    for f in arrow:
        values = [r.get(f.name) for r in rows]
        if f.type == pa.uuid():
            raw = pa.array([None if v is None else v.bytes for v in values], pa.binary(16))
            columns.append(pa.ExtensionArray.from_storage(f.type, raw))
        else:
            columns.append(pa.array(values, f.type))
    path = folder / name
    pq.write_table(pa.table(columns, schema=arrow), path)
    content = DataFileContent.DATA if equality_ids is None else DataFileContent.EQUALITY_DELETES
    return DataFile(
        content=content,
        file_path=str(path),
        record_count=len(rows),
        file_size_in_bytes=path.stat().st_size,
        equality_ids=equality_ids,
    )


def test_the_keys_of_a_file_have_a_limit(tmp_path, monkeypatch):
    """A dictionary of one long value makes any number of long rows of a few bytes."""
    rows = [{"name": "a" * 1000}] * 2000
    file = write(tmp_path, "d.parquet", rows, FIELDS[1:2], equality_ids=(2,))
    assert file.file_size_in_bytes < 10_000
    data = write(tmp_path, "a.parquet", [{"id": 1, "name": "b"}], FIELDS)
    assert left(tmp_path, data, file) == [0]
    monkeypatch.setenv(UNPACKED.name, "1")
    with pytest.raises(CorruptFileError, match=r"d\.parquet holds keys .*ICECOMB_MAX_UNPACKED_MIB"):
        left(tmp_path, data, file)


def left(folder, data, *deletes, row_filter=None, fields=FIELDS, **options):
    """The positions of the rows that are left."""
    metadata = new_table_metadata(
        Schema(fields),
        UNPARTITIONED_PARTITION_SPEC,
        UNSORTED_SORT_ORDER,
        str(folder),
        {"format-version": "3" if any(f.name == "v" for f in fields) else "2"},
    )
    from icecomb.format.rows.values.metadata_columns import ROW_POSITION

    scan = ArrowScan(metadata, FileIO(), Schema((ROW_POSITION,)), **options)
    residual = {} if row_filter is None else {"residual": bind(SCHEMA, row_filter)}
    task = FileScanTask(data, deletes, **residual)
    found = scan.to_table([task])["_pos"].to_pylist()
    assert scan.count([task]) == len(found)
    return found


ROWS = [
    {"id": 1, "name": "a", "d": 0.5, "dec": Decimal("1.00"), "u": uuid.UUID(int=1), "st": {"x": 1}},
    {"id": 2, "name": None, "d": NAN, "dec": None, "u": uuid.UUID(int=2), "st": None},
    {"id": None, "name": "b", "d": None, "dec": Decimal("2.50"), "u": None, "st": {"x": None}},
    {"id": 1, "name": "b", "d": 0.5, "dec": Decimal("1.00"), "u": uuid.UUID(int=1), "st": {"x": 4}},
]


@pytest.mark.parametrize(
    ("columns", "keys", "expected"),
    [
        ([0], [{"id": 1}], [1, 2]),
        ([0], [{"id": None}], [0, 1, 3]),
        ([0], [{"id": 77}], [0, 1, 2, 3]),
        ([0], [], [0, 1, 2, 3]),
        ([1], [{"name": "b"}, {"name": None}], [0]),
        ([2], [{"d": NAN}], [0, 2, 3]),
        ([3], [{"dec": Decimal("1.00")}], [1, 2]),
        ([4], [{"u": uuid.UUID(int=2)}, {"u": None}], [0, 3]),
        ([0, 1], [{"id": 1, "name": "b"}, {"id": 2, "name": None}], [0, 2]),
        ([0, 1], [{"id": 1, "name": None}, {"id": None, "name": "a"}], [0, 1, 2, 3]),
        ([0, 2, 3], [{"id": 1, "d": 0.5, "dec": Decimal("1.00")}], [1, 2]),
    ],
)
def test_rows_equal_to_a_key_are_deleted(tmp_path, columns, keys, expected):
    """Nulls equal nulls and NaN equals NaN."""
    data = write(tmp_path, "data.parquet", ROWS, FIELDS)
    fields = [FIELDS[i] for i in columns]
    ids = tuple(f.field_id for f in fields)
    deletes = write(tmp_path, "eq.parquet", keys, fields, equality_ids=ids)
    assert left(tmp_path, data, deletes) == expected


def test_fields_of_structs_can_be_compared(tmp_path):
    data = write(tmp_path, "data.parquet", ROWS, FIELDS)
    keys = [{"st": {"x": 4}}, {"st": {"x": None}}]
    deletes = write(tmp_path, "eq.parquet", keys, [FIELDS[5]], equality_ids=(7,))
    assert left(tmp_path, data, deletes) == [0]


def test_delete_files_of_different_columns_all_apply_and_so_does_the_filter(tmp_path):
    data = write(tmp_path, "data.parquet", ROWS, FIELDS)
    one = write(tmp_path, "a.parquet", [{"name": "b"}], [FIELDS[1]], equality_ids=(2,))
    two = write(tmp_path, "b.parquet", [{"id": 2}], [FIELDS[0]], equality_ids=(1,))
    three = write(tmp_path, "c.parquet", [{"id": 5}], [FIELDS[0]], equality_ids=(1,))
    assert left(tmp_path, data, one, two, three) == [0]
    assert left(tmp_path, data, one, two, three, row_filter=GreaterThan("d", 1.0)) == []


def test_a_column_the_data_file_does_not_have_is_null_there(tmp_path):
    data = write(tmp_path, "data.parquet", [{"id": 1}], [FIELDS[0]])
    deletes = write(tmp_path, "eq.parquet", [{"name": None}], [FIELDS[1]], equality_ids=(2,))
    assert left(tmp_path, data, deletes) == []


def test_only_the_equality_columns_of_a_delete_file_are_compared(tmp_path):
    data = write(tmp_path, "data.parquet", ROWS, FIELDS)
    keys = [{"id": 2, "name": "other"}]
    deletes = write(tmp_path, "eq.parquet", keys, FIELDS[:2], equality_ids=(1,))
    assert left(tmp_path, data, deletes) == [0, 2, 3]


def test_a_delete_file_without_its_column_is_an_error(tmp_path):
    """Nulls in its place would delete rows."""
    data = write(tmp_path, "data.parquet", ROWS, FIELDS)
    wrong = write(tmp_path, "eq.parquet", [{"id": 1}], [FIELDS[0]], equality_ids=(2,))
    with pytest.raises(CorruptFileError, match=r"eq\.parquet has no column of field id 2"):
        left(tmp_path, data, wrong)
    silent = write(tmp_path, "no.parquet", [{"id": 1}], [FIELDS[0]], equality_ids=())
    with pytest.raises(CorruptFileError, match="does not say what it compares"):
        left(tmp_path, data, silent)


def test_a_column_that_no_schema_has_any_more_is_an_error(tmp_path):
    """Iceberg Java says then: cannot find required field for ID."""
    data = write(tmp_path, "data.parquet", ROWS, FIELDS)
    gone = NestedField(99, "gone", LongType())
    deletes = write(tmp_path, "eq.parquet", [{"gone": 1}], [gone], equality_ids=(99,))
    with pytest.raises(UnsupportedError, match="the column of id 99, which no schema"):
        left(tmp_path, data, deletes)


small = st.one_of(st.none(), st.integers(0, 3))
text = st.one_of(st.none(), st.sampled_from(["a", "b"]))
row = st.fixed_dictionaries({"id": small, "name": text})


@given(
    rows=st.lists(row, min_size=1, max_size=30),
    keys=st.lists(row, max_size=5),
    single=st.lists(small, max_size=2),
    batch_size=st.integers(1, 10),
)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])  # fmt: skip
def test_any_keys_agree_with_a_model(tmp_path, rows, keys, single, batch_size):
    data = write(tmp_path, "m.parquet", rows, FIELDS[:2])
    both = write(tmp_path, "k.parquet", keys, FIELDS[:2], equality_ids=(1, 2))
    one = write(tmp_path, "s.parquet", [{"id": i} for i in single], FIELDS[:1], equality_ids=(1,))
    expected = [
        i for i, r in enumerate(rows) if r not in keys and r["id"] not in single
    ]  # fmt: skip
    assert left(tmp_path, data, both, one, batch_size=batch_size, workers=1) == expected


def test_a_variant_is_no_key(tmp_path):
    fields = (FIELDS[0], NestedField(2, "v", VariantType()))
    variant = {"metadata": b"\1\0\0", "value": b"\0"}
    data = write(tmp_path, "data.parquet", [{"id": 1, "v": variant}], fields)
    deletes = write(tmp_path, "eq.parquet", [{"v": variant}], fields[1:], equality_ids=(2,))
    with pytest.raises(UnsupportedError, match=r"compares the column 'v' of type variant"):
        left(tmp_path, data, deletes, fields=fields)
