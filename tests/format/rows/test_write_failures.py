"""Writes that fail in the middle: a clear error, and no file of the attempt stays."""

from __future__ import annotations

import gc
import itertools
import random
import resource
import tempfile

import pyarrow as pa
import pytest

from icecomb.format.errors import FileIOError, SchemaError
from icecomb.format.rows.write.data_writer import write_data
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER, SortField, SortOrder
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    DecimalType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
)
from icecomb.format.storage.file_io import FileIO
from tests.rings import sampled

IO = FileIO()
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "s", StringType())))
FORMATS = ["parquet", "orc", "avro"]


def new_table(
    folder, schema=SCHEMA, *, partitioned=False, sort_order=UNSORTED_SORT_ORDER, **properties
):
    spec = UNPARTITIONED_PARTITION_SPEC
    if partitioned:
        spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("bucket[4]"), "p"),))
    return new_table_metadata(schema, spec, sort_order, str(folder), properties)


def frame(rows):
    source = random.Random(1)
    texts = [source.randbytes(50).hex() for _ in range(rows)]
    return pa.table({"id": pa.array(range(rows), pa.int64()), "s": texts})


def files_below(folder):
    gc.collect()
    return sorted(str(p) for p in folder.rglob("*") if p.is_file())


@pytest.fixture(scope="module", autouse=True)
def _only_new_garbage():
    """What earlier tests left need not be looked through again each time.

    It is not given back: all tests that were collected would be, and looked through to the end of the run.
    """
    gc.freeze()


@pytest.fixture
def full_disk():
    """No file may grow beyond 100,000 bytes: the system refuses the write, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(size=100_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    yield fill
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("file_format", FORMATS)
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_full_disk_is_named_and_leaves_nothing(tmp_path, full_disk, file_format, partitioned):
    metadata = new_table(tmp_path, partitioned=partitioned, **{"write.format.default": file_format})
    full_disk()
    with pytest.raises(FileIOError, match=rf"annot write .*\.{file_format}"):
        write_data(IO, metadata, frame(20_000))
    assert [*tmp_path.iterdir()] == []  # no empty folder of a partition, either


@pytest.mark.parametrize("file_format", FORMATS)
def test_a_disk_that_is_full_at_the_last_bytes_leaves_nothing(tmp_path, full_disk, file_format):
    """What is left to write when a file is closed: footers, and in ORC the only stripe."""
    metadata = new_table(tmp_path / "a", **{"write.format.default": file_format})
    (whole,) = write_data(IO, metadata, frame(1000))
    metadata = new_table(tmp_path / "b", **{"write.format.default": file_format})
    full_disk(whole.file_size_in_bytes - 5)
    with pytest.raises(FileIOError, match=rf"annot write .*\.{file_format}"):
        write_data(IO, metadata, frame(1000))
    assert files_below(tmp_path / "b") == []


def test_a_disk_too_full_to_sort_leaves_nothing(tmp_path, full_disk, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("icecomb.format.rows.write.row_sort.RUN_BYTES", 500_000)
    order = SortOrder(1, (SortField(2, parse_transform("identity")),))
    metadata = new_table(tmp_path, sort_order=order)
    full_disk()
    with pytest.raises(FileIOError, match=r"icecomb-sort-.*arrow"):
        write_data(IO, metadata, frame(20_000))
    assert files_below(tmp_path) == []


def test_a_sort_without_a_temporary_folder_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    monkeypatch.setattr("icecomb.format.rows.write.row_sort.RUN_BYTES", 500_000)
    order = SortOrder(1, (SortField(2, parse_transform("identity")),))
    metadata = new_table(tmp_path, sort_order=order)
    with pytest.raises(FileIOError, match=r"Cannot keep sorted rows in .*gone: No such file"):
        write_data(IO, metadata, frame(20_000))
    assert files_below(tmp_path) == []


@pytest.mark.parametrize(
    ("file_format", "problem"),
    [("parquet", RuntimeError), ("orc", KeyboardInterrupt), ("avro", MemoryError)],
)
def test_an_interrupted_stream_leaves_nothing(tmp_path, monkeypatch, file_format, problem):
    monkeypatch.setattr("icecomb.format.rows.write.data_writer.PIECE_ROWS", 500)
    properties = {
        "write.format.default": file_format,
        "write.target-file-size-bytes": "1",
        "write.parquet.row-group-limit": "100",
    }
    metadata = new_table(tmp_path, partitioned=True, **properties)
    seen = []

    def batches():
        # Avro is written by the mebibyte.
        yield from frame(3_000 if file_format == "parquet" else 60_000).to_batches()
        seen.extend(files_below(tmp_path))
        raise problem

    reader = pa.RecordBatchReader.from_batches(frame(0).schema, batches())
    with pytest.raises(problem):
        write_data(IO, metadata, reader)
    assert seen
    assert files_below(tmp_path) == []


UNFIT = {
    "int": (pa.array([2**31], pa.int64()), IntegerType()),
    "long": (pa.array([2**63], pa.uint64()), LongType()),
    "decimal": (pa.array([1000], pa.decimal128(4, 0)), DecimalType(3, 0)),
    "timestamp": (pa.array([2**62], pa.timestamp("s")), TimestampType()),
    "text": (pa.array([b"\xff\xfe"]), StringType()),
}


@pytest.mark.parametrize(
    ("file_format", "unfit"), sampled(itertools.product(FORMATS, UNFIT), keep=5)
)
def test_values_that_do_not_fit_are_refused_by_column(tmp_path, file_format, unfit):
    array, kind = UNFIT[unfit]
    schema = Schema((NestedField(1, "narrow", kind),))
    metadata = new_table(tmp_path, schema, **{"write.format.default": file_format})
    with pytest.raises(SchemaError, match="narrow"):
        write_data(IO, metadata, pa.table({"narrow": array}))
    assert files_below(tmp_path) == []
