"""Data and delete files of every format that are damaged, cut or gone: the error names the file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from icecomb.format.errors import CorruptFileError, NoSuchFileError
from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import ListType, LongType, NestedField, StringType
from icecomb.format.storage.file_io import FileIO

SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())))
PATH_ID, POSITION_ID = 2147483546, 2147483545


def read(folder, *tasks, schema=SCHEMA):
    metadata = new_table_metadata(
        schema, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(folder), {}
    )
    return ArrowScan(metadata, FileIO(), metadata.schema()).to_table(tasks)


@pytest.fixture
def data(write_file):
    numbers = range(200)
    return write_file(
        "data", {1: ("id", pa.array(numbers)), 2: ("s", pa.array([f"v{i}" for i in numbers]))}
    )


@pytest.fixture(params=["positions", "keys"])
def deletes(request, write_file, data):
    if request.param == "keys":
        keys = write_file("keys", {1: ("id", pa.array([3]))}, equality_ids=(1,))
        return replace(keys, content=DataFileContent.EQUALITY_DELETES)
    columns = {
        PATH_ID: ("file_path", pa.array([data.file_path])),
        POSITION_ID: ("pos", pa.array([3])),
    }
    return replace(write_file("positions", columns), content=DataFileContent.POSITION_DELETES)


@pytest.mark.parametrize("part", [0.5, 0.95])
def test_a_file_shorter_than_stated_is_named(tmp_path, data, part):
    path = Path(data.file_path)
    path.write_bytes(path.read_bytes()[: int(data.file_size_in_bytes * part)])
    with pytest.raises(CorruptFileError, match=rf"{path.name} has \d+ bytes, its manifest says"):
        read(tmp_path, FileScanTask(data))


def test_a_wrong_magic_number_is_told_with_the_file(tmp_path, data):
    path = Path(data.file_path)
    content = path.read_bytes()
    path.write_bytes(b"NOPE" + content[4:-4] + b"NOPE")
    with pytest.raises(CorruptFileError, match=path.name):
        read(tmp_path, FileScanTask(data))


@pytest.mark.parametrize("seed", range(12))
def test_bytes_that_changed_are_an_error_or_other_values_but_no_crash(tmp_path, data, seed):
    """Formats without checksums cannot tell every change."""
    path = Path(data.file_path)
    content = bytearray(path.read_bytes())
    at = len(content) * (2 * seed + 1) // 24
    content[at : at + 8] = b"\xff\x00\xff\x00\xff\x00\xff\x00"
    path.write_bytes(content)
    try:
        read(tmp_path, FileScanTask(data))
    except CorruptFileError as error:
        assert path.name in str(error)  # noqa: PT017 - there may be none


def test_a_missing_data_file_is_named(tmp_path, data):
    Path(data.file_path).unlink()
    with pytest.raises(NoSuchFileError, match=Path(data.file_path).name):
        read(tmp_path, FileScanTask(data))


def test_a_missing_delete_file_is_named_and_no_deleted_row_shown(tmp_path, data, deletes):
    assert read(tmp_path, FileScanTask(data, (deletes,))).num_rows == 199
    Path(deletes.file_path).unlink()
    with pytest.raises(NoSuchFileError, match=Path(deletes.file_path).name):
        read(tmp_path, FileScanTask(data, (deletes,)))


def test_a_cut_delete_file_is_named(tmp_path, data, deletes):
    path = Path(deletes.file_path)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(CorruptFileError, match=path.name):
        read(tmp_path, FileScanTask(data, (deletes,)))


def test_deletes_of_a_path_that_is_no_file_delete_nothing(tmp_path, data, write_file):
    columns = {
        PATH_ID: ("file_path", pa.array(["/gone/data.parquet"] * 2)),
        POSITION_ID: ("pos", pa.array([0, 1])),
    }
    gone = replace(write_file("gone", columns), content=DataFileContent.POSITION_DELETES)
    assert read(tmp_path, FileScanTask(data, (gone,))).num_rows == 200


def with_id(name, kind, number):
    key = {"PARQUET:field_id": str(number), "iceberg.id": str(number)}
    return pa.field(name, kind, metadata=key)


def invalid_text(rows):
    """Latin-1 instead of UTF-8 in the last row."""
    texts = pa.array([b"ok"] * (rows - 1) + ["caf\u00e9".encode("latin-1")], pa.binary())
    return pa.Array.from_buffers(pa.string(), rows, texts.buffers())


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize("nested", [False, True])
def test_text_that_is_no_utf8_is_named_with_its_column(tmp_path, file_format, nested):
    text = invalid_text(10)
    kind, number = pa.string(), 2
    if nested:
        kind = pa.list_(with_id("element", pa.string(), 3))
        text = pa.Array.from_buffers(
            kind, 1, [None, pa.py_buffer(b"\0\0\0\0\x0a\0\0\0")], children=[text]
        )
    table = pa.table(
        [pa.array([1] * len(text)), text],
        schema=pa.schema([with_id("id", pa.int64(), 1), with_id("s", kind, number)]),
    )
    path = tmp_path / f"latin.{file_format}"
    (pq if file_format == "parquet" else orc).write_table(table, path)
    file = DataFile(
        file_path=str(path),
        file_format=FileFormat(file_format.upper()),
        record_count=len(text),
        file_size_in_bytes=path.stat().st_size,
    )
    column = NestedField(2, "s", ListType(3, StringType()) if nested else StringType())
    schema = Schema((SCHEMA.fields[0], column))
    with pytest.raises(CorruptFileError, match=rf"latin\.{file_format}.*column 's'.*UTF8"):
        read(tmp_path, FileScanTask(file), schema=schema)
    assert read(tmp_path, FileScanTask(file), schema=Schema(SCHEMA.fields[:1])).num_rows
