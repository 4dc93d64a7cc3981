from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from icecomb.format.avro.schema import avro_schema
from icecomb.format.errors import CorruptFileError, ValidationError
from icecomb.format.manifests.entry_encoder import EntryEncoder
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.reader import read_manifest, read_manifest_columns
from icecomb.format.manifests.schema import entry_type
from icecomb.format.manifests.writer import (
    ManifestWriter,
    assign_sequence_number,
)
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.test_columns import SCHEMA, SPEC, entry
from tests.format.manifests.written_manifest import write_manifest

ADDED, EXISTING, DELETED = (
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.EXISTING,
    ManifestEntryStatus.DELETED,
)
IO = FileIO()
VALUES = [
    (BooleanType(), (True, False)),
    (IntegerType(), (-7, 2**31 - 1)),
    (LongType(), (-(2**63), 5)),
    (FloatType(), (-0.0, 1.25)),
    (DoubleType(), (math.inf, 0.0)),
    (DecimalType(9, 2), (Decimal("-12.34"), Decimal("1234567.89"))),
    (DecimalType(38, 0), (Decimal(-(10**38) + 1), Decimal(10**38 - 1))),
    (DateType(), (-3, 19000)),
    (TimeType(), (0, 86_399_999_999)),
    (TimestamptzType(), (-62_135_596_800_000_000, 253_402_300_799_999_999)),
    (StringType(), ("a/b c=é", "")),
    (UUIDType(), (UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), UUID(int=1))),
    (FixedType(5), (b"\x01\x02\x03\x04\x05", b"\xff" * 5)),
    (BinaryType(), (b"", b"\x80\x00")),
]


def identity(*types) -> tuple[Schema, PartitionSpec]:
    """A table partitioned by columns of these types."""
    numbered = list(enumerate(types, 1))
    return (
        Schema(tuple(NestedField(i, f"c {i}", kind) for i, kind in numbered)),
        PartitionSpec(
            3,
            tuple(
                PartitionField(i, 999 + i, parse_transform("identity"), f"c {i}")
                for i, _ in numbered
            ),
        ),
    )


def data_file(path="/t/a", partition=(), spec_id=3, **fields) -> DataFile:
    sizes = {"record_count": 10, "file_size_in_bytes": 1000}
    return DataFile(file_path=path, partition=partition, spec_id=spec_id, **{**sizes, **fields})


def kept(status, file, **fields) -> ManifestEntry:
    numbers = {"snapshot_id": 3, "sequence_number": 4, "file_sequence_number": 5}
    return ManifestEntry(status=status, data_file=file, **{**numbers, **fields})


class Copying:
    """A folder in which manifests are written and copied.

    Args:
        folder: Where.
        schema: The table's schema.
        spec: Its partition spec.
        version: The format version.
        content: What the manifests hold.
    """

    def __init__(self, folder, schema=SCHEMA, spec=SPEC, version=2, content=ManifestContent.DATA):
        self.folder = folder
        self.schema, self.spec, self.version, self.content = schema, spec, version, content

    def written(self, entries, name="written.avro", snapshot_id=9) -> ManifestFile:
        """A manifest of these entries, written one by one."""
        (self.folder / name).unlink(missing_ok=True)
        return write_manifest(
            IO,
            str(self.folder / name),
            entries,
            format_version=self.version,
            spec=self.spec,
            schema=self.schema,
            snapshot_id=snapshot_id,
            content=self.content,
        )

    def copied(self, manifest, statuses, snapshot_id=9) -> ManifestFile:
        """A manifest of the entries of another, each with another status; None leaves it out."""
        columns = read_manifest_columns(IO, manifest, spec=self.spec, cache=None)
        rows = np.array([row for row, status in enumerate(statuses) if status is not None], int)
        chosen = np.array([status for status in statuses if status is not None], np.int32)
        options = (self.version, self.spec, self.schema, snapshot_id)
        encoder = EntryEncoder(*options, self.content)
        writer = ManifestWriter(*options, content=self.content)
        for made in encoder.encode(columns, rows, chosen):
            writer.add_encoded(made)
        path = self.folder / "copied.avro"
        path.unlink(missing_ok=True)
        return writer.finish(IO, str(path))


def described(manifest) -> ManifestFile:
    """What a manifest list says, but for where the file is."""
    return replace(manifest, manifest_path="", manifest_length=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("entries")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(entry, st.sampled_from((EXISTING, DELETED, None))), max_size=8))
def test_copied_entries_are_those_that_were_written(folder, pairs):
    copying = Copying(folder)
    source = assign_sequence_number(copying.written([old for old, _ in pairs]), 9, 5)
    copy = copying.copied(source, [status for _, status in pairs])
    wanted = [
        replace(old, status=status, snapshot_id=9 if status is DELETED else old.snapshot_id)
        for old, status in pairs
        if status is not None
    ]
    assert read_manifest(IO, assign_sequence_number(copy, 9, 5)) == wanted
    assert described(copy) == described(copying.written(wanted, "one-by-one.avro"))


@pytest.mark.parametrize("version", [1, 2])
def test_partition_values_of_every_type_are_copied(tmp_path, version):
    schema, spec = identity(*(kind for kind, _ in VALUES))
    first, second = (tuple(values[at] for _, values in VALUES) for at in (0, 1))
    files = [
        data_file("/t/1", first, value_counts={1: 3}, split_offsets=(4, 9), key_metadata=b"k"),
        data_file("/t/2", (None,) * len(VALUES), file_format=FileFormat.ORC, sort_order_id=1),
        data_file("/t/3", second, lower_bounds={2: b"", 1: b"\xff"}, column_sizes={}),
    ]
    entries = [kept(EXISTING, file, sequence_number=0, file_sequence_number=0) for file in files]
    copying = Copying(tmp_path, schema, spec, version)
    source = replace(copying.written(entries), sequence_number=0)
    copy = copying.copied(source, [EXISTING] * len(files))
    assert read_manifest(IO, replace(copy, sequence_number=0)) == entries
    assert described(copy) == described(copying.written(entries, "one-by-one.avro"))


def test_added_entries_inherit_their_numbers_again(tmp_path):
    copying = Copying(tmp_path, *identity(LongType()))
    old = [
        ManifestEntry(status=ADDED, data_file=data_file("/t/1", (1,))),
        ManifestEntry(status=ADDED, data_file=data_file("/t/2", (1,)), sequence_number=2),
    ]
    # of an attempt that is not committed: the manifest has no number yet
    copy = copying.copied(copying.written(old), [ADDED, ADDED])
    found = read_manifest(IO, assign_sequence_number(copy, 9, 7))
    assert [(e.snapshot_id, e.sequence_number, e.file_sequence_number) for e in found] == [
        (9, 7, 7),
        (9, 2, 7),
    ]
    assert (copy.added_files_count, copy.min_sequence_number) == (2, 2)


def test_entries_of_several_manifests_come_into_one(tmp_path):
    schema, spec = identity(LongType())
    copying = Copying(tmp_path, schema, spec)
    encoder = EntryEncoder(2, spec, schema, 9)
    made = []
    for number in range(3):
        files = [data_file(f"/t/{number}{n}", (number,)) for n in range(2)]
        source = copying.written([kept(EXISTING, f) for f in files], f"{number}.avro")
        columns = read_manifest_columns(IO, source, spec=spec, cache=None)
        made += encoder.encode(columns, np.array([1, 0]), np.zeros(2, np.int32))
    writer = ManifestWriter(2, spec, schema, 9)
    for found in sorted(made, key=lambda e: -e.partition[0]):
        writer.add_encoded(found)
    manifest = writer.finish(IO, str(tmp_path / "all.avro"))
    paths = [e.data_file.file_path for e in read_manifest(IO, manifest)]
    assert paths == ["/t/21", "/t/20", "/t/11", "/t/10", "/t/01", "/t/00"]


@pytest.mark.parametrize(
    ("before", "after", "value"),
    [
        (IntegerType(), LongType(), -5),
        (FloatType(), DoubleType(), 0.5),
        (DecimalType(4, 2), DecimalType(30, 2), Decimal("-1.25")),
    ],
)
def test_values_of_a_column_that_was_promoted_get_the_new_type(tmp_path, before, after, value):
    entries = [kept(EXISTING, data_file("/t/1", (value,)))]
    source = Copying(tmp_path, *identity(before)).written(entries)
    copying = Copying(tmp_path, *identity(after))
    copy = copying.copied(source, [EXISTING])
    assert read_manifest(IO, copy, spec=copying.spec) == entries
    assert described(copy) == described(copying.written(entries, "one-by-one.avro"))


def test_delete_files_are_copied(tmp_path):
    files = [
        data_file("/t/p", content=DataFileContent.POSITION_DELETES, referenced_data_file="/t/a"),
        data_file("/t/e", content=DataFileContent.EQUALITY_DELETES, equality_ids=(1, 7)),
    ]
    copying = Copying(tmp_path, *identity(), content=ManifestContent.DELETES)
    entries = [kept(EXISTING, file) for file in files]
    copy = copying.copied(copying.written(entries), [EXISTING, EXISTING])
    assert read_manifest(IO, copy) == entries
    assert copy.content is ManifestContent.DELETES


def foreign(tmp_path, **values) -> ManifestFile:
    """A manifest of one file by a writer that checks nothing."""
    fields = entry_type(2, StructType(())).fields
    schema = avro_schema(StructType(fields), "manifest_entry")
    inner = next(f["type"]["fields"] for f in schema["fields"] if f["name"] == "data_file")
    for field in inner:
        if field["name"] in values and field["name"] in ("record_count", "file_path"):
            field["type"] = ["null", field["type"]]
    file = {
        **dict.fromkeys(f["name"] for f in inner),
        "content": 0,
        "file_path": "/t/a",
        "file_format": "parquet",
        "partition": {},
        "record_count": 1,
        "file_size_in_bytes": 1,
        **values,
    }
    record = {"status": 0, "snapshot_id": 1, "data_file": file}
    path = tmp_path / "foreign.avro"
    numbers = {"sequence_number": 1, "file_sequence_number": 1}
    with path.open("wb") as out:
        fastavro.writer(out, fastavro.parse_schema(schema), [{**record, **numbers}])
    return ManifestFile(manifest_path=str(path), manifest_length=path.stat().st_size)


def test_what_others_wrote_in_lower_case_is_written_as_the_specification_says(tmp_path):
    copy = Copying(tmp_path, *identity()).copied(foreign(tmp_path), [EXISTING])
    with Path(copy.manifest_path).open("rb") as written:
        (record,) = fastavro.reader(written)
    assert record["data_file"]["file_format"] == "PARQUET"


@pytest.mark.parametrize(
    ("values", "problem", "message"),
    [
        ({"content": 1}, ValidationError, "'/t/a' of content POSITION_DELETES does not belong"),
        ({"equality_ids": [3]}, ValidationError, "'/t/a' names equality columns"),
        ({"file_path": ""}, ValidationError, "'' has no path"),
        ({"record_count": None}, CorruptFileError, "without a value of record_count"),
        ({"file_path": None}, ValidationError, "File None has no path"),
    ],
)
def test_what_no_manifest_can_hold_is_refused(tmp_path, values, problem, message):
    with pytest.raises(problem, match=message):
        Copying(tmp_path, *identity()).copied(foreign(tmp_path, **values), [EXISTING])


def test_rows_that_another_writer_could_not_count_are_handed_on_but_not_added(tmp_path):
    copying = Copying(tmp_path, *identity())
    uncounted = foreign(tmp_path, record_count=-1)
    [entry] = copying.copied(uncounted, [EXISTING]).fetch_manifest_entry(IO)
    assert entry.data_file.record_count == -1
    with pytest.raises(ValidationError, match="'/t/a' has a negative size"):
        copying.copied(uncounted, [ADDED])


def test_a_file_without_a_number_to_keep_is_refused(tmp_path):
    copying = Copying(tmp_path, *identity(), version=1)
    source = replace(copying.written([kept(EXISTING, data_file())]), sequence_number=3)
    copying.version = 2
    with pytest.raises(ValidationError, match="File '/t/a' has no sequence number to keep"):
        copying.copied(source, [EXISTING])


def test_a_manifest_of_another_partitioning_is_refused(tmp_path):
    source = Copying(tmp_path, *identity(LongType())).written(
        [kept(EXISTING, data_file("/t/a", (1,)))]
    )
    with pytest.raises(ValidationError, match=r"has 1 partition values, spec 3 has 2 fields"):
        Copying(tmp_path, *identity(LongType(), LongType())).copied(source, [EXISTING])
