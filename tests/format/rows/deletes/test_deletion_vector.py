"""Deletion vectors have the bytes of the specification, and are read by offset and length."""

from __future__ import annotations

import io
import json
import random
import struct
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from icecomb.format.errors import (
    CorruptFileError,
    NoSuchFileError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.input_limit import UNPACKED
from icecomb.format.rows.deletes.deletion_vector import (
    BLOB_TYPE,
    DamagedVectorError,
    VectorReader,
    decode_vector,
    encode_vector,
)
from icecomb.format.rows.deletes.position_delete import PositionDeletes, positions_by_path
from icecomb.format.rows.deletes.puffin_file import PuffinWriter
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.range_input import RangeInput
from tests.format.rows.deletes.deletion_vectors import vector_file
from tests.format.rows.deletes.mutation import mutated

SCHEMA = Schema((NestedField(1, "id", LongType()),))
DATA = "/t/data/a.parquet"
VECTOR = "0100000000000000 00000000 3a300000 01000000 00000000 10000000 0100"
"""The vector of {1} (shared/facts of the format, section 4)."""


def blob_of(*positions):
    return encode_vector(np.array(positions, np.int64))


def framed(vector, *, magic=b"\xd1\xd3\x39\x64", length=None, checksum=None):
    covered = magic + vector
    told = len(covered) if length is None else length
    crc = zlib.crc32(covered) if checksum is None else checksum
    return struct.pack(">I", told) + covered + struct.pack(">I", crc)


def test_a_blob_is_a_length_a_magic_a_bitmap_and_a_checksum():
    vector = bytes.fromhex(VECTOR)
    assert len(vector) == 30
    assert blob_of(1) == framed(vector)
    assert len(blob_of(1)) == 42
    assert decode_vector(framed(vector), 1).tolist() == [1]


@pytest.mark.parametrize(
    ("blob", "problem"),
    [
        (b"", "has 0 bytes, too few"),
        (framed(b"")[:11], "has 11 bytes, too few"),
        (framed(bytes.fromhex(VECTOR), length=35), "states a length of 35, not 34"),
        (framed(bytes.fromhex(VECTOR)) + b"\0", "states a length of 34, not 35"),
        (framed(bytes.fromhex(VECTOR), magic=b"\xd1\xd3\x39\x65"), "has the magic d1d33965, not d1d33964"),
        (framed(bytes.fromhex(VECTOR), checksum=1), "has another checksum than its bytes"),
        (framed(bytes.fromhex(VECTOR)[:-1]), "extends beyond its end"),
    ],
)  # fmt: skip
def test_a_damaged_blob_says_what_is_wrong(blob, problem):
    with pytest.raises(DamagedVectorError, match=problem):
        decode_vector(blob, 1)


@pytest.mark.parametrize("positions", [[], [-1, 3], [3, 3], [4, 3]])
def test_positions_that_no_vector_has_are_refused(positions):
    with pytest.raises(ValidationError, match="distinct, ascending and not negative"):
        blob_of(*positions)


@pytest.mark.parametrize("position", [1 << 60, (1 << 63) - 1])
def test_a_position_that_would_take_gigabytes_is_refused(position):
    with pytest.raises(ValidationError, match=f"No deletion vector can hold position {position}"):
        blob_of(position)


def written(*vectors):
    stream = io.BytesIO()
    writer = PuffinWriter(stream)
    blobs = [
        writer.add(blob_of(*positions), BLOB_TYPE, [2147483645], {"referenced-data-file": path, "cardinality": str(len(positions))})
        for path, positions in vectors
    ]  # fmt: skip
    size = writer.finish()
    content = stream.getvalue()
    assert len(content) == size
    return content, blobs


def test_a_puffin_file_is_read_by_pyiceberg():
    vectors = (("/t/ä.parquet", (1, 5)), ("/t/b.parquet", (0, 70_000, 1 << 32)))
    content, blobs = written(*vectors)
    other = PuffinFile(content)
    assert [(b.offset, b.length) for b in other.footer.blobs] == [
        (b.offset, b.length) for b in blobs
    ]
    found = deletion_vectors_from_puffin_file(other)
    read = {one.referenced_data_file: tuple(one.to_vector().to_pylist()) for one in found}
    assert read == dict(vectors)
    for blob, (_, positions) in zip(blobs, vectors, strict=True):
        part = content[blob.offset : blob.offset + blob.length]
        assert decode_vector(part, len(positions)).tolist() == list(positions)


def test_a_footer_has_the_members_of_the_specification_and_no_others():
    content, _ = written((DATA, (1,)))
    size, flags, magic = struct.unpack("<i4s4s", content[-12:])
    assert (flags, magic, content[:4]) == (bytes(4), b"PFA1", b"PFA1")
    assert content[-16 - size : -12 - size] == b"PFA1"
    assert json.loads(content[-12 - size : -12]) == {
        "blobs": [
            {
                "type": "deletion-vector-v1",
                "fields": [2147483645],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": 4,
                "length": 42,
                "properties": {"referenced-data-file": DATA, "cardinality": "1"},
            }
        ],
        "properties": {"created-by": "icecomb"},
    }


def read(folder, *tasks, **options):
    metadata = new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, str(folder), {}
    )
    return ArrowScan(metadata, FileIO(), metadata.schema(), **options), tasks


@pytest.fixture
def data(write_file):
    return write_file("data", {1: ("id", pa.array(range(200)))})


def rows(folder, *tasks):
    scan, given = read(folder, *tasks)
    return scan.to_table(given)["id"].to_pylist()


def test_deleted_rows_of_every_format_are_left_out(tmp_path, data):
    vector = vector_file(tmp_path / "v.puffin", data.file_path, blob_of(0, 1, 150, 199, 500), 5)
    task = FileScanTask(data, (vector,))
    assert rows(tmp_path, task) == [*range(2, 150), *range(151, 199)]


def test_rows_are_counted_without_opening_the_data_file(tmp_path, data):
    vector = vector_file(tmp_path / "v.puffin", data.file_path, blob_of(0, 1, 150, 199, 500), 5)
    Path(data.file_path).unlink()
    scan, tasks = read(tmp_path, FileScanTask(data, (vector,)))
    assert scan.count(tasks) == 196


def test_a_raw_blob_without_a_container_is_read_by_offset_and_length(tmp_path, data):
    vector = vector_file(tmp_path / "v.puffin", data.file_path, blob_of(3), 1, before=b"")
    assert vector.content_offset == 0
    assert len(rows(tmp_path, FileScanTask(data, (vector,)))) == 199


def test_vectors_that_lie_together_are_read_at_once(tmp_path, monkeypatch):
    parts = [blob_of(number, number + 1000) for number in range(50)]
    path = tmp_path / "v.puffin"
    first = vector_file(path, "/t/0", b"".join(parts), 2, content_size_in_bytes=len(parts[0]))
    vectors = [
        replace(first, referenced_data_file=f"/t/{at}", content_offset=4 + at * len(parts[0]))
        for at in range(50)
    ]
    files = FileIO()
    opened = []
    monkeypatch.setattr(
        files, "open_input", lambda *given: opened.append(given) or FileIO().open_input(*given)
    )
    reader = VectorReader(files)
    for number, vector in enumerate(vectors):
        assert reader.positions(vector).tolist() == [number, number + 1000]
    assert len(opened) == 1


class Remote(FileIO):
    """Local files behind the ranges of an object store, which are counted."""

    def __init__(self):
        super().__init__()
        self.ranges = []

    def served_by(self, location):  # noqa: ARG002 - the interface
        return SimpleNamespace(has_slow_requests=True)

    def open_input(self, location, size=None):
        content = Path(location).read_bytes()

        def read_range(start, length):
            self.ranges.append((start, length))
            return content[start : start + length]

        return pa.PythonFile(RangeInput(read_range, location, size), mode="r")


def far_apart(path):
    """Ten vectors in a file of 5 MiB."""
    blobs = [blob_of(number) for number in range(10)]
    gap = bytes((1 << 19) - 42)
    first = vector_file(path, "/t/0", gap.join(blobs), 1, content_size_in_bytes=42)
    return [
        replace(first, referenced_data_file=f"/t/{at}", content_offset=4 + (at << 19))
        for at in range(10)
    ]


def test_vectors_of_a_remote_puffin_file_are_read_a_mebibyte_at_a_time(tmp_path):
    files = Remote()
    reader = VectorReader(files)
    found = [reader.positions(vector).tolist() for vector in far_apart(tmp_path / "v.puffin")]
    assert found == [[number] for number in range(10)]
    assert len(files.ranges) == 5
    assert max(length for _, length in files.ranges) <= (1 << 20) + 1


def test_a_remote_puffin_file_that_is_cut_names_the_data_file(tmp_path):
    path = tmp_path / "v.puffin"
    vectors = far_apart(path)
    path.write_bytes(path.read_bytes()[: 3 << 20])
    reader = VectorReader(Remote())
    assert reader.positions(vectors[1]).tolist() == [1]
    with pytest.raises(CorruptFileError, match=rf"data file /t/9 cannot be read: {path} ends"):
        reader.positions(vectors[9])


def test_a_large_vector_is_read_whole_and_not_kept(tmp_path):
    positions = np.arange(0, 1 << 24, 20)
    vector = vector_file(tmp_path / "v.puffin", DATA, encode_vector(positions), len(positions))
    assert vector.content_size_in_bytes > 1 << 20
    reader = VectorReader(FileIO())
    assert (reader.positions(vector) == positions).all()
    assert (reader.positions(vector) == positions).all()
    assert not reader._kept


def test_vectors_take_eight_bytes_a_row_and_a_few_mebibytes():
    positions = np.arange(0, 1 << 24, 5)
    tracemalloc.start()
    try:
        blob = encode_vector(positions)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(blob) + (16 << 20)
        tracemalloc.reset_peak()
        assert len(decode_vector(blob, len(positions))) == len(positions)
        assert tracemalloc.get_traced_memory()[1] < 8 * len(positions) + (16 << 20)
    finally:
        tracemalloc.stop()


def test_all_positions_of_a_vector_are_those_of_its_data_file(tmp_path):
    vector = vector_file(tmp_path / "v.puffin", DATA, blob_of(2, 9), 2)
    found = positions_by_path(FileIO(), vector)
    assert {path: positions.tolist() for path, positions in found.items()} == {DATA: [2, 9]}


DAMAGED = [
    ({"content_size_in_bytes": 41}, "states a length of 34, not 33"),
    ({"content_offset": 5}, "ends at byte 47 of a file of 46"),
    ({"content_offset": 3}, "states a length of 822083584, not 34"),
    ({"content_offset": 1 << 40, "file_size_in_bytes": 1 << 50}, "ends at byte 1099511627818 of a file of"),
    ({"content_offset": None}, "states offset None and length 42"),
    ({"content_size_in_bytes": None}, "states offset 4 and length None"),
    ({"content_offset": -4}, "states offset -4 and length 42"),
    ({"content_size_in_bytes": -1}, "states offset 4 and length -1"),
    ({"content_size_in_bytes": 1 << 40}, "ends at byte 1099511627780 of a file of 46"),
    ({"content_size_in_bytes": 1 << 40, "file_size_in_bytes": 1 << 50}, "ends at byte 1099511627780 of a file of 46"),
    ({"record_count": 2}, "has 1 positions, not 2"),
    ({"record_count": 1 << 60}, "states 1152921504606846976 deleted rows of a file of 200"),
    ({"referenced_data_file": "/t/other"}, "is not that of"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "problem"), DAMAGED, ids=[problem for _, problem in DAMAGED])
def test_an_entry_that_is_wrong_names_the_data_file_and_the_puffin_file(
    tmp_path, data, facts, problem
):
    path = tmp_path / "v.puffin"
    vector = vector_file(path, data.file_path, blob_of(1), 1)
    wrong = replace(vector, **facts)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptFileError, match=problem) as error:
            rows(tmp_path, FileScanTask(data, (wrong,)))
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert data.file_path in str(error.value)
    assert error.value.context == {"path": str(path), "data_file": wrong.referenced_data_file}


@pytest.mark.seeds(50, gate=1)
def test_mutations_of_a_puffin_file_and_of_its_entry_never_show_other_rows(tmp_path, seed):
    """Four hundred a seed: each is an error that names both files, or shows a vector of the file.

    A blob copied whole over another of its length is a valid one: nothing but the footer tells.
    """
    draw = random.Random(seed)
    runs = np.arange(70_000, 70_300)
    found = [np.array([at, at + 5]) for at in range(5)] + [np.append(np.arange(0, 90, 3), runs)]
    content, blobs = written(
        *((f"/t/{at}", positions.tolist()) for at, positions in enumerate(found))
    )
    path = tmp_path / "v.puffin"
    entry = vector_file(path, "/t/0", content, 1)
    for _ in range(400):
        at = draw.randrange(len(found))
        path.write_bytes(mutated(content, draw) if draw.random() < 0.7 else content)
        numbers = {
            "record_count": len(found[at]),
            "file_size_in_bytes": len(content),
            "content_offset": blobs[at].offset,
            "content_size_in_bytes": blobs[at].length,
        }
        for name in draw.sample(sorted(numbers), draw.choice([0, 0, 1, 2])):
            change = draw.choice([-1, 1, 8, -numbers[name], 1 << 31, 1 << 62, -(1 << 40)])
            numbers[name] += change
        vector = replace(entry, referenced_data_file=f"/t/{at}", **numbers)
        try:
            positions = VectorReader(FileIO()).positions(vector)
        except CorruptFileError as error:
            assert f"/t/{at} in {path}" in error.message  # noqa: PT017 - there may be none
        else:
            same = [other.tolist() for other in found if len(other) == len(found[at])]
            moved = (path.read_bytes(), numbers["content_offset"]) != (content, blobs[at].offset)
            assert positions.tolist() in (same if moved else [found[at].tolist()])


def test_an_encrypted_vector_is_refused_by_name(tmp_path, data):
    vector = vector_file(
        tmp_path / "v.puffin", data.file_path, b"AGS1" + bytes(80), 1, key_metadata=b"k"
    )
    with pytest.raises(
        UnsupportedError, match=f"data file {data.file_path} in .*v.puffin is encrypted"
    ):
        rows(tmp_path, FileScanTask(data, (vector,)))


def test_two_vectors_for_one_file_are_not_applied(tmp_path, data):
    one = vector_file(tmp_path / "v.puffin", data.file_path, blob_of(1), 1)
    two = vector_file(tmp_path / "w.puffin", data.file_path, blob_of(2), 1)
    with pytest.raises(
        CorruptFileError, match=r"has several deletion vectors: .*v\.puffin .*w\.puffin"
    ):
        rows(tmp_path, FileScanTask(data, (one, two)))


def test_a_puffin_file_that_is_gone_says_which_data_file_suffers(tmp_path, data):
    vector = vector_file(tmp_path / "v.puffin", data.file_path, blob_of(1), 1)
    Path(vector.file_path).unlink()
    with pytest.raises(
        NoSuchFileError,
        match=f"data file {data.file_path} cannot be read: .*v.puffin does not exist",
    ):
        rows(tmp_path, FileScanTask(data, (vector,)))


def test_a_vector_has_no_more_rows_than_its_data_file(tmp_path, data):
    """A few bytes of runs may state two to the power of 30."""
    vector = vector_file(tmp_path / "v.puffin", data.file_path, blob_of(1), data.record_count + 1)
    with pytest.raises(CorruptFileError, match=r"states \d+ deleted rows of a file of \d+"):
        PositionDeletes(FileIO()).of(data, [vector])


def test_a_vector_of_a_file_with_as_many_rows_has_a_limit_too(tmp_path, data, monkeypatch):
    """A manifest may state any number of rows, for both."""
    positions = np.arange(0, 1 << 18)
    path = tmp_path / "v.puffin"
    vector = vector_file(path, data.file_path, encode_vector(positions), len(positions))
    large = replace(data, record_count=1 << 40)
    assert len(PositionDeletes(FileIO()).of(large, [vector])) == len(positions)
    monkeypatch.setenv(UNPACKED.name, "1")
    for read in (
        lambda: PositionDeletes(FileIO()).of(large, [vector]),
        lambda: VectorReader(FileIO()).positions(vector),
        lambda: positions_by_path(FileIO(), vector),
    ):
        with pytest.raises(
            CorruptFileError, match=r"262144 deleted rows, more than .*ICECOMB_MAX_UNPACKED_MIB"
        ):
            read()


def test_a_vector_takes_the_place_of_position_delete_files(tmp_path, write_file):
    columns = {
        2147483546: ("file_path", pa.array([DATA] * 2)),
        2147483545: ("pos", pa.array([3, 4])),
    }
    data = write_file("d", {1: ("id", pa.array(range(10)))})
    older = write_file("p", columns, content=1)
    vector = vector_file(tmp_path / "v.puffin", data.file_path, blob_of(7), 1)
    assert PositionDeletes(FileIO()).of(data, [older, vector]).tolist() == [7]


def test_a_task_weighs_its_vector_and_not_the_whole_puffin_file(tmp_path, data):
    vector = vector_file(tmp_path / "v.puffin", data.file_path, blob_of(1), 1, after=bytes(1 << 20))
    task = FileScanTask(data, (vector,))
    assert task.weight(0) == data.file_size_in_bytes + 42
