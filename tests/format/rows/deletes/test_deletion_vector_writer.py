"""Deletion vectors are written in one Puffin file, whose footer says where they are."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from icecomb.format.manifests.manifest import DataFile, DataFileContent, FileFormat
from icecomb.format.rows.deletes.deletion_vector_writer import (
    DeletionVectorWriter,
    OlderDeletes,
    delete_writer,
    replaced_by,
)
from icecomb.format.rows.deletes.position_delete import PositionDeletes
from icecomb.format.rows.deletes.position_delete_writer import PositionDeleteWriter
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SCHEMA = Schema((NestedField(1, "id", LongType()),))


def metadata(tmp_path, version=3, **properties):
    given = {"format-version": str(version), **properties}
    location = str(tmp_path / "t")
    return new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location, given
    )


def data(name) -> DataFile:
    return DataFile(file_path=f"/t/data/{name}", record_count=100, file_size_in_bytes=7)


def positions(*values):
    return np.array(values, np.int64)


def footer(content: bytes):
    """The payload of a Puffin file's footer (spec: Puffin)."""
    length, flags, magic = struct.unpack("<i4s4s", content[-12:])
    assert (flags, magic) == (bytes(4), b"PFA1")
    start = len(content) - 12 - length
    assert content[start - 4 : start] == content[:4] == b"PFA1"
    return json.loads(content[start : start + length])


def test_the_vectors_of_an_operation_are_in_one_file_that_its_footer_describes(tmp_path):
    writer = DeletionVectorWriter(IO, metadata(tmp_path), "op")
    writer.add(data("a"), positions(1))
    writer.add(data("b"), positions())
    writer.add(data("ü"), positions(0, 5, 99))
    first, second = writer.close()
    content = Path(first.file_path).read_bytes()
    assert first.file_path == second.file_path
    assert first.file_path.endswith("/t/data/00000-0-op-00001-deletes.puffin")
    assert first.file_size_in_bytes == second.file_size_in_bytes == len(content)
    # spec: the vector of {1} has 30 bytes, its blob 42
    assert (first.content_offset, first.content_size_in_bytes) == (4, 42)
    assert second.content_offset == 46
    described = footer(content)["blobs"]
    for file, blob in zip((first, second), described, strict=True):
        assert file.content is DataFileContent.POSITION_DELETES
        assert file.file_format is FileFormat.PUFFIN
        assert file.lower_bounds is file.upper_bounds is file.sort_order_id is None
        assert blob == {
            "type": "deletion-vector-v1",
            "fields": [2147483645],
            "snapshot-id": -1,
            "sequence-number": -1,
            "offset": file.content_offset,
            "length": file.content_size_in_bytes,
            "properties": {
                "referenced-data-file": file.referenced_data_file,
                "cardinality": str(file.record_count),
            },
        }
    assert second.referenced_data_file == "/t/data/ü"
    assert PositionDeletes(IO).of(data("ü"), [second]).tolist() == [0, 5, 99]


def test_rows_of_a_data_file_that_is_given_again_join_its_vector(tmp_path):
    writer = DeletionVectorWriter(IO, metadata(tmp_path), "op")
    writer.add(data("a"), positions(1, 3))
    writer.add(data("a"), positions(2, 3))
    (vector,) = writer.close()
    assert vector.record_count == 3
    assert PositionDeletes(IO).of(data("a"), [vector]).tolist() == [1, 2, 3]


def test_nothing_is_written_without_deleted_rows_and_nothing_is_left_after_an_abort(tmp_path):
    writer = DeletionVectorWriter(IO, metadata(tmp_path), "op")
    assert writer.close() == []
    writer.abort()
    writer.add(data("a"), positions(1))
    (vector,) = writer.close()
    assert IO.exists(vector.file_path)
    writer.abort()
    assert not IO.exists(vector.file_path)


def test_the_file_is_where_the_table_has_its_data(tmp_path):
    elsewhere = {"write.data.path": str(tmp_path / "elsewhere")}
    writer = DeletionVectorWriter(IO, metadata(tmp_path, **elsewhere), "op")
    writer.add(data("a"), positions(1))
    (vector,) = writer.close()
    assert vector.file_path.startswith(str(tmp_path / "elsewhere"))


@pytest.mark.parametrize(
    ("version", "kind"), [(2, PositionDeleteWriter), (3, DeletionVectorWriter)]
)
def test_version_3_has_vectors_and_version_2_position_delete_files(tmp_path, version, kind):
    # as in Iceberg Java, vectors have no format or granularity to choose
    chosen = {"write.delete.format.default": "orc", "write.delete.granularity": "partition"}
    for properties in ({}, chosen):
        made = delete_writer(IO, metadata(tmp_path, version, **properties), "op")
        assert isinstance(made, kind)


def test_a_vector_stands_for_all_position_deletes_and_replaces_those_about_its_file(tmp_path):
    """A file about several data files stays, as others need it; so do equality deletes."""
    by_partition = metadata(tmp_path, 2, **{"write.delete.granularity": "partition"})
    several = PositionDeleteWriter(IO, by_partition, "several")
    several.add(data("a"), positions(1))
    several.add(data("b"), positions(2))
    alone = PositionDeleteWriter(IO, metadata(tmp_path, 2), "alone")
    alone.add(data("a"), positions(4, 7))
    (about_both,), (about_a,) = several.close(), alone.close()
    by_value = DataFile(
        content=DataFileContent.EQUALITY_DELETES,
        file_path="/t/data/e",
        record_count=1,
        file_size_in_bytes=7,
        equality_ids=(1,),
    )
    task = FileScanTask(data("a"), (by_value, about_both, about_a))
    joined, replaced = OlderDeletes(IO).joined(task, positions(3, 4))
    assert joined.tolist() == [1, 3, 4, 7]
    assert replaced == replaced_by(task) == [about_a]

    writer = DeletionVectorWriter(IO, metadata(tmp_path), "op")
    writer.add(data("a"), joined)
    (vector,) = writer.close()
    task = FileScanTask(data("a"), (vector,))
    joined, replaced = OlderDeletes(IO).joined(task, positions(9))
    assert joined.tolist() == [1, 3, 4, 7, 9]
    assert replaced == [vector]
