from __future__ import annotations

import io as bytes_io
import itertools
import json
import math
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import fastavro
import pyiceberg.io.pyarrow
import pyiceberg.manifest
import pyiceberg.partitioning
import pyiceberg.schema
import pyiceberg.typedef
import pytest

from icecomb.format.errors import (
    CorruptFileError,
    NoSuchFileError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.manifests.manifest import (
    UNASSIGNED_SEQ,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    PartitionFieldSummary,
)
from icecomb.format.manifests.manifest_list import read_manifests, write_manifest_list
from icecomb.format.manifests.manifest_union import distinct_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.manifests.writer import assign_sequence_number
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
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
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.written_manifest import write_manifest

ADDED, EXISTING, DELETED = (
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.EXISTING,
    ManifestEntryStatus.DELETED,
)
IO = FileIO()
PYICEBERG_IO = pyiceberg.io.pyarrow.PyArrowFileIO()

UUID_1 = UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
VALUES = [
    (BooleanType(), (True, False)),
    (IntegerType(), (-7, 2**31 - 1)),
    (LongType(), (-(2**63), 5)),
    (FloatType(), (-0.5, 1.25)),
    (DoubleType(), (-(2.0**40), 0.375)),
    (DecimalType(9, 2), (Decimal("-12.34"), Decimal("1234567.89"))),
    (DecimalType(38, 0), (Decimal(-(10**38) + 1), Decimal(10**38 - 1))),
    (DateType(), (-3, 19000)),
    (TimeType(), (0, 86_399_999_999)),
    (TimestampType(), (-62_135_596_800_000_000, 1_234_567_890_123_456)),
    (TimestamptzType(), (1, 253_402_300_799_999_999)),
    (StringType(), ("a/b c=é", "😎")),
    (UUIDType(), (UUID_1, UUID(int=1))),
    (UUIDType(), (UUID(int=2**127), UUID(int=7))),
    (FixedType(5), (b"\x01\x02\x03\x04\x05", b"\xff" * 5)),
    (BinaryType(), (b"", b"\x80\x00")),
]
SCHEMA = Schema(tuple(NestedField(i, f"c {i}", kind) for i, (kind, _) in enumerate(VALUES, 1)))
SPEC = PartitionSpec(
    3,
    tuple(
        PartitionField(i, 999 + i, parse_transform("identity"), f"c {i}")
        for i in range(1, len(VALUES) + 1)
    ),
)
NULLS = (None,) * len(VALUES)
FIRST, SECOND = (tuple(values[at] for _, values in VALUES) for at in (0, 1))


def data_file(path="/t/data/a.parquet", partition=FIRST, spec_id=3, **fields) -> DataFile:
    return DataFile(
        file_path=path,
        partition=partition,
        spec_id=spec_id,
        **{"record_count": 10, "file_size_in_bytes": 1000, **fields},
    )


FULL = data_file(
    column_sizes={1: 100, 2: 200},
    value_counts={1: 10, 2: 10},
    null_value_counts={1: 0, 2: 3},
    nan_value_counts={4: 1},
    lower_bounds={1: b"\x00", 2: b""},
    upper_bounds={1: b"\x01", 2: b"\xff\xff"},
    key_metadata=b"key",
    split_offsets=(4, 128),
    sort_order_id=1,
)


def write(tmp_path, entries, *, version=2, spec=SPEC, schema=SCHEMA, snapshot_id=9, **options):
    path = str(tmp_path / "m.avro")
    return write_manifest(
        IO,
        path,
        entries,
        format_version=version,
        spec=spec,
        schema=schema,
        snapshot_id=snapshot_id,
        **options,
    )


def added(file: DataFile, **fields) -> ManifestEntry:
    return ManifestEntry(status=ADDED, data_file=file, **fields)


def test_a_partition_value_without_room_in_its_type_names_the_file_and_a_remedy(tmp_path):
    """Spark's writers compute partition values themselves: the commit must refuse them."""
    schema = Schema((NestedField(1, "d", DecimalType(4, 2)),))
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("truncate[2]"), "p"),))
    file = data_file(partition=(Decimal("-100.00"),), spec_id=0)
    with pytest.raises(ValidationError, match=r"/t/data/a\.parquet.*p=-100\.00") as refused:
        write(tmp_path, [added(file)], spec=spec, schema=schema)
    assert "another transform" in refused.value.hint
    assert not list(tmp_path.iterdir())


def pyiceberg_entries(manifest: ManifestFile) -> list[pyiceberg.manifest.ManifestEntry]:
    theirs = pyiceberg.manifest.ManifestFile.from_args(
        manifest_path=manifest.manifest_path,
        manifest_length=manifest.manifest_length,
        partition_spec_id=manifest.partition_spec_id,
        content=pyiceberg.manifest.ManifestContent(manifest.content.value),
        sequence_number=manifest.sequence_number,
        min_sequence_number=manifest.min_sequence_number,
        added_snapshot_id=manifest.added_snapshot_id,
    )
    return theirs.fetch_manifest_entry(PYICEBERG_IO, discard_deleted=False)


FILE_FIELDS = [
    "file_path",
    "record_count",
    "file_size_in_bytes",
    "column_sizes",
    "value_counts",
    "null_value_counts",
    "nan_value_counts",
    "lower_bounds",
    "upper_bounds",
    "key_metadata",
    "sort_order_id",
    "spec_id",
]


@pytest.mark.parametrize("version", [1, 2])
def test_every_field_and_partition_type_comes_back(tmp_path, version):
    files = [FULL, data_file("/t/b", SECOND, file_format=FileFormat.ORC), data_file("/t/c", NULLS)]
    manifest = assign_sequence_number(
        write(tmp_path, [added(file) for file in files], version=version), 9, 7
    )
    entries = read_manifest(IO, manifest)
    assert [entry.data_file for entry in entries] == files
    assert {
        (e.status, e.snapshot_id, e.sequence_number, e.file_sequence_number) for e in entries
    } == {(ADDED, 9, 7, 7)}


@pytest.mark.parametrize("version", [1, 2])
def test_pyiceberg_reads_what_we_write(tmp_path, version):
    files = [FULL, data_file("/t/b", SECOND), data_file("/t/c", NULLS)]
    manifest = assign_sequence_number(
        write(tmp_path, [added(file) for file in files], version=version), 9, 7
    )
    for ours, theirs in zip(files, pyiceberg_entries(manifest), strict=True):
        assert (theirs.status.value, theirs.snapshot_id) == (1, 9)
        assert (theirs.sequence_number, theirs.file_sequence_number) == (7, 7)
        for name in FILE_FIELDS:
            assert getattr(theirs.data_file, name) == getattr(ours, name), name
        assert theirs.data_file.split_offsets == (ours.split_offsets and list(ours.split_offsets))
        assert theirs.data_file.file_format.value == ours.file_format.value
        stored = [v.bytes if isinstance(v, UUID) else v for v in ours.partition]
        found = [v.bytes if isinstance(v, UUID) else v for v in theirs.data_file.partition._data]
        assert found == stored


@pytest.mark.parametrize("version", [1, 2])
def test_we_read_what_pyiceberg_writes(tmp_path, version):
    raw = json.loads(json.dumps(SCHEMA.to_json()))
    schema = pyiceberg.schema.Schema.model_validate(raw)
    spec = pyiceberg.partitioning.PartitionSpec.model_validate(SPEC.to_json())
    # it cannot write a table with two partition fields of type uuid
    path = str(tmp_path / "theirs.avro")
    fields = {name: getattr(FULL, name) for name in FILE_FIELDS if name != "spec_id"}
    kept = [i for i in range(len(VALUES)) if i != 13]
    spec = pyiceberg.partitioning.PartitionSpec(*[spec.fields[i] for i in kept], spec_id=3)
    theirs = pyiceberg.manifest.DataFile.from_args(
        **fields,
        content=pyiceberg.manifest.DataFileContent.DATA,
        file_format="PARQUET",
        split_offsets=[4, 128],
        partition=pyiceberg.typedef.Record(*[FIRST[i] for i in kept]),
        equality_ids=None,
    )
    theirs.spec_id = 3
    with pyiceberg.manifest.write_manifest(
        version, spec, schema, PYICEBERG_IO.new_output(path), 9, "deflate"
    ) as writer:
        writer.add(
            pyiceberg.manifest.ManifestEntry.from_args(
                status=pyiceberg.manifest.ManifestEntryStatus.ADDED,
                snapshot_id=9,
                sequence_number=None,
                file_sequence_number=None,
                data_file=theirs,
            )
        )
    length = Path(path).stat().st_size
    manifest = ManifestFile(
        manifest_path=path,
        manifest_length=length,
        partition_spec_id=3,
        sequence_number=4,
        added_snapshot_id=9,
    )
    (entry,) = read_manifest(IO, manifest)
    assert entry.sequence_number == 4
    expected = {**{name: getattr(FULL, name) for name in FILE_FIELDS}, "split_offsets": (4, 128)}
    assert entry.data_file == DataFile(**expected, partition=tuple(FIRST[i] for i in kept))


def test_the_file_says_what_the_specification_asks_for(tmp_path):
    manifest = write(tmp_path, [added(FULL)], content=ManifestContent.DATA)
    with Path(manifest.manifest_path).open("rb") as file:
        reader = fastavro.reader(file)
        metadata = reader.metadata
    assert json.loads(metadata["schema"]) == SCHEMA.to_json()
    assert json.loads(metadata["partition-spec"]) == SPEC.to_json()["fields"]
    assert metadata["partition-spec-id"] == "3"
    assert metadata["format-version"] == "2"
    assert metadata["content"] == "data"
    assert metadata["avro.codec"] == "deflate"
    iceberg = json.loads(metadata["iceberg.schema"])
    assert [field["id"] for field in iceberg["fields"]] == [0, 1, 3, 4, 2]
    # the ids and order of format version 2 in Iceberg Java 1.11
    ids = [field["id"] for field in iceberg["fields"][4]["type"]["fields"]]
    assert ids == [
        134,
        100,
        101,
        102,
        103,
        104,
        108,
        109,
        110,
        137,
        125,
        128,
        131,
        132,
        135,
        140,
        143,
    ]
    avro = json.loads(metadata["avro.schema"])
    assert avro["name"] == "manifest_entry"
    partition = avro["fields"][4]["type"]["fields"][3]["type"]
    assert partition["name"] == "r102"
    assert partition["fields"][0] == {
        "name": "c_x201",
        "type": ["null", "boolean"],
        "default": None,
        "iceberg-field-name": "c 1",
        "field-id": 1000,
    }


def test_format_version_1_has_its_own_fields(tmp_path):
    manifest = write(tmp_path, [added(FULL)], version=1)
    with Path(manifest.manifest_path).open("rb") as file:
        reader = fastavro.reader(file)
        avro = json.loads(reader.metadata["avro.schema"])
        assert reader.metadata["format-version"] == "1"
        assert "content" not in reader.metadata
        (record,) = reader
    assert [field["field-id"] for field in avro["fields"]] == [0, 1, 2]
    ids = [field["field-id"] for field in avro["fields"][2]["type"]["fields"]]
    assert ids == [100, 101, 102, 103, 104, 105, 108, 109, 110, 137, 125, 128, 131, 132, 140]
    assert record["data_file"]["block_size_in_bytes"] == 64 * 1024 * 1024
    with pytest.raises(ValidationError, match="version 1"):
        write(tmp_path, [], version=1, content=ManifestContent.DELETES)


def test_a_delete_manifest_comes_back(tmp_path):
    files = [
        data_file("/t/p", content=DataFileContent.POSITION_DELETES, referenced_data_file="/t/a"),
        data_file("/t/e", content=DataFileContent.EQUALITY_DELETES, equality_ids=(1, 2)),
    ]
    manifest = write(tmp_path, [added(file) for file in files], content=ManifestContent.DELETES)
    assert manifest.content is ManifestContent.DELETES
    assigned = assign_sequence_number(manifest, 9, 2)
    assert [entry.data_file for entry in read_manifest(IO, assigned)] == files
    theirs = pyiceberg_entries(assigned)
    assert [entry.data_file.content.value for entry in theirs] == [1, 2]
    assert theirs[1].data_file.equality_ids == [1, 2]


def test_data_and_deletes_are_not_mixed(tmp_path):
    deletes = data_file(content=DataFileContent.POSITION_DELETES)
    with pytest.raises(ValidationError, match="does not belong"):
        write(tmp_path, [added(deletes)])
    with pytest.raises(ValidationError, match="does not belong"):
        write(tmp_path, [added(FULL)], content=ManifestContent.DELETES)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"path": ""}, "no path"),
        ({"record_count": -1}, "negative"),
        ({"partition": (1,)}, "partition values"),
        ({"equality_ids": (1,)}, "equality"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path, fields, reason):
    with pytest.raises(ValidationError, match=reason):
        write(tmp_path, [added(data_file(**fields))])
    assert list(tmp_path.iterdir()) == []


def test_counts_rows_and_least_sequence_number_are_of_the_right_entries(tmp_path):
    entries = [
        added(data_file("/1", record_count=1)),
        added(data_file("/2", record_count=2), sequence_number=5),
        ManifestEntry(
            status=EXISTING,
            snapshot_id=4,
            sequence_number=3,
            file_sequence_number=4,
            data_file=data_file("/3", record_count=4),
        ),
        ManifestEntry(
            status=DELETED,
            snapshot_id=9,
            sequence_number=1,
            file_sequence_number=2,
            data_file=data_file("/4", record_count=8),
        ),
    ]
    manifest = write(tmp_path, entries)
    counts = (
        manifest.added_files_count,
        manifest.existing_files_count,
        manifest.deleted_files_count,
    )
    rows = (manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count)
    assert (counts, rows) == ((2, 1, 1), (3, 4, 8))
    assert (manifest.sequence_number, manifest.min_sequence_number) == (UNASSIGNED_SEQ, 3)
    assigned = assign_sequence_number(manifest, 9, 11)
    assert (assigned.sequence_number, assigned.min_sequence_number) == (11, 3)
    found = [
        (e.snapshot_id, e.sequence_number, e.file_sequence_number)
        for e in read_manifest(IO, assigned)
    ]
    assert found == [(9, 11, 11), (9, 5, 11), (4, 3, 4), (9, 1, 2)]
    assert len(read_manifest(IO, assigned, discard_deleted=True)) == 3


def test_only_added_files_inherit_a_sequence_number(tmp_path):
    # a manifest of format version 1 states no numbers at all
    file = data_file("/3")
    entries = [added(file), ManifestEntry(status=EXISTING, snapshot_id=4, data_file=file)]
    manifest = write(tmp_path, entries, version=1)
    # in a list of format version 1 all are zero
    listed = assign_sequence_number(manifest, 9, 0)
    assert [e.sequence_number for e in read_manifest(IO, listed)] == [0, 0]
    # in one of format version 2 an existing file must say its own
    listed = assign_sequence_number(manifest, 9, 6)
    assert [e.sequence_number for e in read_manifest(IO, listed)] == [6, None]
    assert [e.sequence_number for e in pyiceberg_entries(listed)] == [6, None]


def test_a_kept_file_needs_its_sequence_number(tmp_path):
    entry = ManifestEntry(status=EXISTING, snapshot_id=4, data_file=FULL)
    with pytest.raises(ValidationError, match="sequence number"):
        write(tmp_path, [entry])


def test_a_manifest_of_another_snapshot_gets_no_sequence_number(tmp_path):
    manifest = write(tmp_path, [added(FULL)])
    with pytest.raises(ValidationError, match="cannot get that of snapshot 8"):
        assign_sequence_number(manifest, 8, 1)


ONE = Schema((NestedField(1, "x", DoubleType()),))
ONE_SPEC = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("identity"), "x"),))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1.5, -2.0), (False, False, -2.0, 1.5)),
        ((None, 3.0), (True, False, 3.0, 3.0)),
        ((math.nan, 3.0), (False, True, 3.0, 3.0)),
        ((math.nan, None), (True, True, None, None)),
        ((0.0, -0.0), (False, False, -0.0, 0.0)),
        ((math.inf, -math.inf), (False, False, -math.inf, math.inf)),
    ],
)
def test_a_partition_summary_leaves_nulls_and_nans_out_of_its_bounds(tmp_path, values, expected):
    import struct

    files = [data_file(f"/{i}", (value,), spec_id=0) for i, value in enumerate(values)]
    manifest = write(tmp_path, map(added, files), spec=ONE_SPEC, schema=ONE)
    contains_null, contains_nan, low, high = expected
    bounds = [None if bound is None else struct.pack("<d", bound) for bound in (low, high)]
    assert manifest.partitions == (PartitionFieldSummary(contains_null, contains_nan, *bounds),)


def test_partition_summaries_equal_those_of_pyiceberg(tmp_path):
    files = [data_file("/1"), data_file("/2", SECOND)]
    manifest = write(tmp_path, map(added, files))
    theirs = pyiceberg.manifest.construct_partition_summaries(
        pyiceberg.partitioning.PartitionSpec.model_validate(SPEC.to_json()),
        pyiceberg.schema.Schema.model_validate(SCHEMA.to_json()),
        [pyiceberg.typedef.Record(*file.partition) for file in files],
    )
    for ours, other in zip(manifest.partitions, theirs, strict=True):
        assert (ours.contains_null, ours.contains_nan) == (other.contains_null, other.contains_nan)
        assert (ours.lower_bound, ours.upper_bound) == (other.lower_bound, other.upper_bound)


def list_of(tmp_path, manifests, version=2, name="snap.avro"):
    path = str(tmp_path / name)
    write_manifest_list(
        IO,
        path,
        manifests,
        format_version=version,
        snapshot_id=9,
        parent_snapshot_id=None,
        sequence_number=3,
    )
    return path


def snapshot_with(path, snapshot_id=9):
    return Snapshot(snapshot_id, None, 3, 1, str(path))


MANIFEST = ManifestFile(
    manifest_path="/t/m é.avro",
    manifest_length=123,
    partition_spec_id=2,
    content=ManifestContent.DELETES,
    sequence_number=5,
    min_sequence_number=2,
    added_snapshot_id=2**62,
    added_files_count=1,
    existing_files_count=2,
    deleted_files_count=3,
    added_rows_count=2**40,
    existing_rows_count=5,
    deleted_rows_count=6,
    partitions=(
        PartitionFieldSummary(True, False, b"a", b"z"),
        PartitionFieldSummary(False, None, None, None),
    ),
    key_metadata=b"k",
)


def test_a_manifest_list_comes_back_and_pyiceberg_reads_it(tmp_path):
    path = list_of(tmp_path, [MANIFEST])
    assert read_manifests(IO, snapshot_with(path)) == (MANIFEST,)
    (theirs,) = pyiceberg.manifest.read_manifest_list(PYICEBERG_IO.new_input(path))
    for name in (
        "manifest_path",
        "manifest_length",
        "partition_spec_id",
        "sequence_number",
        "min_sequence_number",
        "added_snapshot_id",
        "added_files_count",
        "existing_files_count",
        "deleted_files_count",
        "added_rows_count",
        "existing_rows_count",
        "deleted_rows_count",
        "key_metadata",
    ):
        assert getattr(theirs, name) == getattr(MANIFEST, name), name
    assert theirs.content.value == 1
    assert [tuple(s._data) for s in theirs.partitions] == [
        (True, False, b"a", b"z"),
        (False, None, None, None),
    ]


def test_a_manifest_list_of_version_1_has_data_manifests_without_numbers(tmp_path):
    with pytest.raises(ValidationError, match="version 1"):
        list_of(tmp_path, [MANIFEST], version=1)
    data = replace(MANIFEST, content=ManifestContent.DATA, sequence_number=0, min_sequence_number=0)
    unstated = replace(data, added_files_count=None, added_rows_count=None, partitions=None)
    path = list_of(tmp_path, [data, unstated], version=1)
    assert read_manifests(IO, snapshot_with(path)) == (data, unstated)
    theirs = list(pyiceberg.manifest.read_manifest_list(PYICEBERG_IO.new_input(path)))
    assert [m.sequence_number for m in theirs] == [0, 0]
    with pytest.raises(ValidationError, match="added_files_count"):
        list_of(tmp_path, [unstated], version=2)


def test_we_read_a_manifest_list_of_pyiceberg(tmp_path):
    path = str(tmp_path / "theirs.avro")
    fields = {
        f: getattr(MANIFEST, f) for f in MANIFEST.__slots__ if f not in ("partitions", "content")
    }
    theirs = pyiceberg.manifest.ManifestFile.from_args(
        **fields,
        content=pyiceberg.manifest.ManifestContent.DELETES,
        partitions=[
            pyiceberg.manifest.PartitionFieldSummary(*s)
            for s in ((True, False, b"a", b"z"), (False, None, None, None))
        ],
    )
    with pyiceberg.manifest.write_manifest_list(
        2, PYICEBERG_IO.new_output(path), 9, None, 3, "deflate"
    ) as writer:
        writer.add_manifests([theirs])
    assert read_manifests(IO, snapshot_with(path)) == (MANIFEST,)


def test_the_list_of_another_snapshot_is_refused(tmp_path):
    path = list_of(tmp_path, [MANIFEST])
    eight, nine = (snapshot_with(path, snapshot_id) for snapshot_id in (8, 9))
    assert read_manifests(IO, nine) == (MANIFEST,)
    with pytest.raises(CorruptFileError, match=r"list of snapshot 9, .* snapshot 8") as caught:
        read_manifests(IO, eight)
    assert path in str(caught.value)
    for snapshots in [eight], [nine, eight, nine]:
        told = {}
        found = distinct_manifests(IO, snapshots, told.__setitem__)
        assert [*told] == [eight]
        assert list(found.values()) == [MANIFEST] * (len(snapshots) > 1)
        with pytest.raises(CorruptFileError, match="list of snapshot 9"):
            distinct_manifests(IO, snapshots)


@pytest.mark.parametrize("added", ["added-data-files", "added-delete-files"])
def test_a_list_that_ends_behind_its_head_is_not_one_of_no_manifests(tmp_path, added):
    """A whole file of Avro, too: only what the snapshot says of itself tells that it was cut."""
    path = list_of(tmp_path, [MANIFEST])
    data = Path(path).read_bytes()
    Path(path).write_bytes(data[: data.index(data[-16:]) + 16])
    cut, *possible = (
        replace(snapshot_with(path), summary={"operation": "append", added: count})
        for count in ("1", "0", "-1", "many")
    )
    for read in (read_manifests, lambda io, snapshot: distinct_manifests(io, [snapshot])):
        with pytest.raises(CorruptFileError, match=r"an empty manifest list, .* added files \(1\)"):
            read(IO, cut)
        assert [len(read(IO, each)) for each in possible] == [0, 0, 0]


@pytest.mark.parametrize("stated", [None, "null", "", "-1"])
def test_a_list_need_not_state_its_snapshot(tmp_path, stated):
    with Path(list_of(tmp_path, [MANIFEST])).open("rb") as file:
        reader = fastavro.reader(file)
        records, schema, metadata = list(reader), reader.writer_schema, dict(reader.metadata)
    for key in ("snapshot-id", "avro.schema", "avro.codec"):
        del metadata[key]
    path = tmp_path / "other.avro"
    with path.open("wb") as file:
        given = {} if stated is None else {"snapshot-id": stated}
        fastavro.writer(file, schema, records, metadata=metadata | given)
    assert read_manifests(IO, snapshot_with(path)) == (MANIFEST,)


def test_a_snapshot_of_version_1_may_name_its_manifests(tmp_path):
    manifest = write(tmp_path, [added(FULL), added(data_file("/t/b"))], version=1)
    snapshot = Snapshot.from_json(
        {"snapshot-id": 9, "timestamp-ms": 1, "manifests": [manifest.manifest_path]}
    )
    (found,) = read_manifests(IO, snapshot)
    assert (found.added_files_count, found.existing_files_count, found.deleted_files_count) == (
        2,
        0,
        0,
    )
    assert (found.added_rows_count, found.sequence_number, found.partition_spec_id) == (20, 0, 3)
    assert [e.sequence_number for e in read_manifest(IO, found)] == [0, 0]


def test_a_manifest_cut_short_between_two_blocks_is_noticed(tmp_path):
    files = [data_file(f"/t/{i:0100d}") for i in range(2000)]
    manifest = assign_sequence_number(
        write(tmp_path, map(added, files), codec="uncompressed"), 9, 1
    )
    path = Path(manifest.manifest_path)
    data = path.read_bytes()
    sync = data[-16:]
    borders = [i for i in range(len(data)) if data.startswith(sync, i)]
    path.write_bytes(data[: borders[1] + 16])
    with pytest.raises(CorruptFileError, match=r"m\.avro is truncated"):
        read_manifest(IO, manifest)


WRONG = {
    "type": "record",
    "name": "other",
    "fields": [{"name": "a", "type": "long", "field-id": 77}],
}


def _avro(schema, records) -> bytes:
    out = bytes_io.BytesIO()
    fastavro.writer(out, schema, records)
    return out.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b"not avro", "not an Avro file"),
        (_avro(WRONG, [{"a": 1}]), "is an Avro file but not a manifest"),
        (
            _avro(
                {
                    "type": "record",
                    "name": "manifest_entry",
                    "fields": [
                        {"name": "status", "type": "int"},
                        {
                            "name": "data_file",
                            "type": {
                                "type": "record",
                                "name": "r2",
                                "fields": [{"name": "file_path", "type": "string"}],
                            },
                        },
                    ],
                },
                [{"status": 1, "data_file": {"file_path": "x"}}],
            ),
            "no file_format",
        ),
    ],
)
def test_a_file_that_is_no_manifest_is_refused_and_named(tmp_path, data, reason):
    path = tmp_path / "bad.avro"
    path.write_bytes(data)
    manifest = ManifestFile(manifest_path=str(path), manifest_length=0)
    with pytest.raises(CorruptFileError, match=reason) as caught:
        read_manifest(IO, manifest)
    assert str(path) in str(caught.value)
    if reason != "no file_format":
        with pytest.raises(CorruptFileError) as caught:
            read_manifests(IO, snapshot_with(path))
        assert str(path) in str(caught.value)


def test_a_manifest_that_is_missing_is_named(tmp_path):
    with pytest.raises(NoSuchFileError, match="gone"):
        read_manifest(IO, ManifestFile(manifest_path=str(tmp_path / "gone"), manifest_length=1))


def test_a_length_in_front_of_fixed_values_is_read_as_java_writes_it(tmp_path):
    schema = Schema((NestedField(1, "f", FixedType(3)), NestedField(2, "g", LongType())))
    fields = [
        PartitionField(i, 999 + i, parse_transform("identity"), n) for i, n in ((1, "f"), (2, "g"))
    ]
    spec = PartitionSpec(0, tuple(fields))
    files = [data_file(f"/t/{i}", (b"abc" if i else None, i), spec_id=0) for i in range(3)]
    manifest = write(tmp_path, map(added, files), spec=spec, schema=schema)
    # the same records under the type that Java declares
    path = Path(manifest.manifest_path)
    declared = b'{"type":"fixed","name":"fixed_3","size":3}'
    data = path.read_bytes().replace(
        b'"name":"f","type":["null","bytes"]', b'"name":"f","type":["null",%b]' % declared
    )
    start = data.index(b"avro.schema") + len(b"avro.schema")
    length = len(data[start:].split(b"\x14avro.codec")[0]) - 2
    size = length << 1
    path.write_bytes(data[:start] + bytes([size & 0x7F | 0x80, size >> 7]) + data[start + 2 :])
    entries = read_manifest(IO, assign_sequence_number(manifest, 9, 1))
    assert [entry.data_file for entry in entries] == files


def test_a_null_summary_and_an_unpartitioned_table_are_no_problem(tmp_path):
    files = [data_file(f"/t/{i}", (), spec_id=0) for i in range(3)]
    manifest = write(tmp_path, map(added, files), spec=PartitionSpec(0, ()), schema=ONE)
    assert manifest.partitions == ()
    assert [e.data_file for e in read_manifest(IO, assign_sequence_number(manifest, 9, 1))] == files
    assert len(pyiceberg_entries(assign_sequence_number(manifest, 9, 1))) == 3


def test_an_empty_manifest_is_read(tmp_path):
    manifest = assign_sequence_number(write(tmp_path, []), 9, 1)
    assert read_manifest(IO, manifest) == []


def test_statuses_and_contents_have_the_numbers_of_the_specification():
    assert [s.value for s in (EXISTING, ADDED, DELETED)] == [0, 1, 2]
    assert [c.value for c in DataFileContent] == [0, 1, 2]
    assert [c.value for c in ManifestContent] == [0, 1]
    assert FileFormat("parquet") is FileFormat.PARQUET
    assert list(itertools.chain(FileFormat)) == ["AVRO", "ORC", "PARQUET", "PUFFIN"]


def test_encrypted_manifests_and_lists_are_refused_by_name(tmp_path):
    """Those of Iceberg Java begin as every file in an AES GCM stream does."""
    location = str(tmp_path / "encrypted.avro")
    Path(location).write_bytes(b"AGS1" + (1 << 20).to_bytes(4, "little") + bytes(100))
    manifest = ManifestFile(manifest_path=location, manifest_length=108, key_metadata=b"\x01")
    snapshot = Snapshot(1, None, 1, 1, location, key_id="k", first_row_id=0, added_rows=0)
    for read in (lambda: read_manifest(IO, manifest), lambda: read_manifests(IO, snapshot)):
        with pytest.raises(UnsupportedError, match=f"{location} is encrypted"):
            read()
