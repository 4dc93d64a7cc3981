from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import orc

from icecomb.format.avro.container import header_bytes
from icecomb.format.avro.encoder import encode_long
from icecomb.format.avro.schema import avro_schema
from icecomb.format.errors import CorruptFileError
from icecomb.format.expressions.binding import bind
from icecomb.format.expressions.expression import GreaterThanOrEqual
from icecomb.format.input_limit import UNPACKED
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.rows.deletes.position_delete import (
    PositionDeletes,
    distinct,
    positions_by_path,
)
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import DELETE_FILE_PATH, DELETE_FILE_POS
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField, StringType, StructType
from icecomb.format.storage.file_io import FileIO

COLUMNS = (DELETE_FILE_PATH, DELETE_FILE_POS)
SCHEMA = Schema((NestedField(1, "id", LongType()),))


def data_file(folder, name, rows, row_group_size=1000):
    path = folder / name
    arrow = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    data = pa.table([pa.array(range(rows), pa.int64())], schema=arrow)
    pq.write_table(data, path, row_group_size=row_group_size)
    return DataFile(file_path=str(path), record_count=rows, file_size_in_bytes=path.stat().st_size)


def delete_file(folder, name, rows, *, ids=True, **facts):
    path = folder / name
    fields = [
        pa.field(f.name, kind, metadata={"PARQUET:field_id": str(f.field_id)} if ids else None)
        for f, kind in ((DELETE_FILE_PATH, pa.string()), (DELETE_FILE_POS, pa.int64()))
    ]
    paths, positions = [r[0] for r in rows], [r[1] for r in rows]
    columns = [pa.array(paths, pa.string()), pa.array(positions, pa.int64())]
    pq.write_table(pa.table(columns, schema=pa.schema(fields)), path, row_group_size=3)
    return DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=str(path),
        record_count=len(rows),
        file_size_in_bytes=path.stat().st_size,
        **facts,
    )


def read(folder, *tasks, **options):
    metadata = new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(folder), {}
    )
    return ArrowScan(metadata, FileIO(), metadata.schema(), **options).to_table(tasks)


def ids(table):
    return table["id"].to_pylist()


@pytest.mark.parametrize("file_format", [FileFormat.PARQUET, FileFormat.ORC, FileFormat.AVRO])
def test_a_delete_file_has_no_more_rows_than_memory_is_for(tmp_path, file_format, monkeypatch):
    """A few bytes may be any number of equal rows."""
    name = str(tmp_path / "d")
    rows = pa.table({"file_path": ["a"] * 90_000, "pos": [0] * 90_000})
    kinds = (StringType(), LongType())
    fields = [NestedField(f.field_id, f.name, kind) for f, kind in zip(COLUMNS, kinds, strict=True)]
    if file_format is FileFormat.PARQUET:
        pq.write_table(rows, name)
    elif file_format is FileFormat.ORC:
        orc.write_table(rows, name)
    else:
        block = (b"\x02a" + b"\0") * 90_000
        schema = avro_schema(StructType(tuple(replace(f, required=True) for f in fields)), "d")
        head = header_bytes({"avro.schema": json.dumps(schema), "avro.codec": "null"}, bytes(16))
        size = encode_long(90_000) + encode_long(len(block))
        Path(name).write_bytes(head + size + block + bytes(16))
    file = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=name,
        file_format=file_format,
        record_count=90_000,
        file_size_in_bytes=Path(name).stat().st_size,
    )
    assert len(positions_by_path(FileIO(), file)["a"]) == 90_000
    monkeypatch.setenv(UNPACKED.name, "1")
    for stated in (90_000, -1):
        with pytest.raises(
            CorruptFileError, match=r"(holds .* rows,|their items are) more than .*MAX_UNPACKED_MIB"
        ):
            positions_by_path(FileIO(), replace(file, record_count=stated))


@pytest.mark.parametrize("facts", [{}, {"referenced_data_file": "a"}])
@pytest.mark.parametrize(
    ("row", "found"),
    [
        ((None, 1), "a null in file_path"),
        (("a", None), "a null in pos"),
        (("b", None), "a null in pos"),
        (("a", -1), "position -1"),
        (("b", -(1 << 40)), f"position {-(1 << 40)}"),
    ],
)
def test_a_row_that_deletes_nothing_is_refused_by_the_name_of_its_file(tmp_path, row, found, facts):
    """Iceberg Java refuses each of them; so does `positions_by_path`, by which files are rewritten."""
    file = data_file(tmp_path, "a.parquet", 5)
    paths = {"a": file.file_path, "b": f"{file.file_path}.other"}
    rows = [(paths.get(path), at) for path, at in (("a", 0), row, ("a", 9))]
    known = {name: paths[path] for name, path in facts.items()}
    deletes = delete_file(tmp_path, "d.parquet", rows, **known)
    task = FileScanTask(file, (deletes,))
    for refused in (
        lambda: read(tmp_path, task),
        lambda: positions_by_path(FileIO(), deletes),
    ):
        with pytest.raises(CorruptFileError, match=rf"Delete file .*d\.parquet holds {found}"):
            refused()


def test_each_file_loses_its_own_rows_only(tmp_path):
    a, b = data_file(tmp_path, "a.parquet", 5), data_file(tmp_path, "b.parquet", 5)
    deletes = delete_file(
        tmp_path, "d.parquet", [(a.file_path, 0), (a.file_path, 4), (b.file_path, 1)]
    )
    assert ids(read(tmp_path, FileScanTask(a, (deletes,)))) == [1, 2, 3]
    assert ids(read(tmp_path, FileScanTask(b, (deletes,)))) == [0, 2, 3, 4]


def test_paths_are_compared_exactly(tmp_path):
    a = data_file(tmp_path, "a.parquet", 2)
    deletes = delete_file(
        tmp_path, "d.parquet", [(f"file:{a.file_path}", 0), (a.file_path + "x", 1)]
    )
    assert ids(read(tmp_path, FileScanTask(a, (deletes,)))) == [0, 1]


def test_positions_count_rows_of_the_file_whatever_is_skipped(tmp_path):
    """Row groups that the filter skips, and parts of a split file, do not shift positions."""
    a = data_file(tmp_path, "a.parquet", 100, row_group_size=10)
    deletes = delete_file(tmp_path, "d.parquet", [(a.file_path, p) for p in (3, 55, 57, 99)])
    residual = bind(SCHEMA, GreaterThanOrEqual("id", 50))
    expected = [i for i in range(50, 100) if i not in {55, 57, 99}]
    assert ids(read(tmp_path, FileScanTask(a, (deletes,), residual))) == expected
    parts = list(FileScanTask(a, (deletes,)).split(a.file_size_in_bytes // 3))
    assert len(parts) > 1
    assert ids(read(tmp_path, *parts)) == [i for i in range(100) if i not in {3, 55, 57, 99}]


@pytest.mark.parametrize("facts", ["bounds", "reference"])
def test_a_delete_file_said_to_be_about_one_data_file_deletes_what_its_rows_name(tmp_path, facts):
    a = data_file(tmp_path, "a.parquet", 5)
    path = a.file_path
    known = (
        {"referenced_data_file": path}
        if facts == "reference"
        else {
            "lower_bounds": {DELETE_FILE_PATH.field_id: path.encode()},
            "upper_bounds": {DELETE_FILE_PATH.field_id: path.encode()},
        }
    )
    rows = [("another", 0), (path, 2), (path, 3)]
    deletes = delete_file(tmp_path, "d.parquet", rows, **known)
    assert ids(read(tmp_path, FileScanTask(a, (deletes,)))) == [0, 1, 4]


def test_a_delete_file_without_ids_is_read_by_the_names_of_the_specification(tmp_path):
    a = data_file(tmp_path, "a.parquet", 3)
    deletes = delete_file(tmp_path, "d.parquet", [(a.file_path, 1)], ids=False)
    assert ids(read(tmp_path, FileScanTask(a, (deletes,)))) == [0, 2]


def test_deletes_of_rows_that_are_not_there_or_twice_change_nothing_more(tmp_path):
    a = data_file(tmp_path, "a.parquet", 3)
    path = a.file_path
    first = delete_file(tmp_path, "d.parquet", [(path, 1), (path, 1), (path, 77)])
    second = delete_file(tmp_path, "e.parquet", [(path, 1)])
    task = FileScanTask(a, (first, second))
    assert ids(read(tmp_path, task)) == [0, 2]
    metadata = new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(tmp_path), {}
    )
    assert ArrowScan(metadata, FileIO(), SCHEMA).count([task]) == 2


def test_an_empty_delete_file_deletes_nothing(tmp_path):
    a = data_file(tmp_path, "a.parquet", 3)
    deletes = delete_file(tmp_path, "d.parquet", [])
    assert ids(read(tmp_path, FileScanTask(a, (deletes,)))) == [0, 1, 2]


def test_a_delete_file_without_its_columns_is_an_error(tmp_path):
    a = data_file(tmp_path, "a.parquet", 3)
    wrong = data_file(tmp_path, "wrong.parquet", 3)
    deletes = DataFile(
        content=DataFileContent.POSITION_DELETES,
        file_path=wrong.file_path,
        record_count=3,
        file_size_in_bytes=wrong.file_size_in_bytes,
    )
    with pytest.raises(CorruptFileError, match=r"wrong\.parquet has no column"):
        read(tmp_path, FileScanTask(a, (deletes,)))


def test_kept_positions_stay_within_the_capacity(tmp_path):
    files = [data_file(tmp_path, f"{i}.parquet", 10) for i in range(4)]
    deletes = [
        delete_file(
            tmp_path, f"d{i}.parquet", [(f.file_path, p) for f in files for p in (i, i + 4)]
        )
        for i in range(4)
    ]
    cache = PositionDeletes(FileIO(), capacity=16)
    for f in files:
        assert cache.of(f, deletes).tolist() == list(range(8))
    assert len(cache._kept) == 2


@given(
    rows=st.integers(1, 60),
    row_group_size=st.integers(1, 20),
    batch_size=st.integers(1, 25),
    deleted=st.lists(st.sets(st.integers(0, 60)), max_size=3),
    lower=st.integers(0, 60),
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_deletes_and_filter_agree_with_a_model(
    tmp_path, rows, row_group_size, batch_size, deleted, lower
):
    a = data_file(tmp_path, "m.parquet", rows, row_group_size)
    files = tuple(
        delete_file(tmp_path, f"m{i}.parquet", [(a.file_path, p) for p in sorted(positions)])
        for i, positions in enumerate(deleted)
    )
    residual = bind(SCHEMA, GreaterThanOrEqual("id", lower))
    gone = set().union(*deleted)
    expected = [i for i in range(rows) if i >= lower and i not in gone]
    found = read(tmp_path, FileScanTask(a, files, residual), batch_size=batch_size, workers=1)
    assert ids(found) == expected


@given(st.lists(st.lists(st.integers(0, 30), max_size=8).map(sorted), min_size=1, max_size=4))
def test_distinct_positions_of_several_files_are_ascending(parts):
    found = distinct([np.array(part, np.int64) for part in parts])
    assert found.tolist() == sorted({n for part in parts for n in part})
