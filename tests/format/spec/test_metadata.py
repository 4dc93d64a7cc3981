"""Table metadata files: what is read, what is refused, what is written."""

import gc
import gzip
import json
import os
import tracemalloc
import uuid
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st
from pyiceberg.table.metadata import TableMetadataUtil

from icecomb.format.errors import (
    CorruptFileError,
    FileAlreadyExistsError,
    NoSuchSnapshotError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.spec.metadata import TableMetadata, new_table_metadata
from icecomb.format.spec.metadata_file import (
    metadata_version,
    new_metadata_location,
    read_metadata,
    write_metadata,
)
from icecomb.format.spec.partition import (
    UNPARTITIONED_PARTITION_SPEC,
    PartitionField,
    PartitionSpec,
)
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot, SnapshotLogEntry, SnapshotRef
from icecomb.format.spec.sort import (
    UNSORTED_SORT_ORDER,
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
)
from icecomb.format.spec.transform import (
    BucketTransform,
    DayTransform,
    TruncateTransform,
    VoidTransform,
)
from icecomb.format.spec.types import LongType, NestedField, StringType, TimestampType
from icecomb.format.storage.file_io import FileIO
from tests.rings import sampled

SCHEMA = Schema(
    (
        NestedField(7, "id", LongType(), True),
        NestedField(8, "at", TimestampType()),
        NestedField(9, "city", StringType(), doc="where"),
    ),
    4,
    (7,),
)
SPEC = PartitionSpec(
    5,
    (
        PartitionField(8, 1007, DayTransform(), "at_day"),
        PartitionField(7, 1003, BucketTransform(16), "id_bucket"),
    ),
)
ORDER = SortOrder(
    3,
    (
        SortField(9, TruncateTransform(2), SortDirection.DESC, NullOrder.NULLS_LAST),
        SortField(7),
    ),
)


def fresh(**properties):
    return new_table_metadata(
        SCHEMA, SPEC, ORDER, "/t", {k.replace("_", "-"): v for k, v in properties.items()}
    )


def version_2():
    """A version 2 file as the specification describes it, by hand."""
    return {
        "format-version": 2,
        "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
        "location": "s3://bucket/test/location",
        "last-sequence-number": 34,
        "last-updated-ms": 1602638573590,
        "last-column-id": 3,
        "current-schema-id": 1,
        "schemas": [
            {
                "type": "struct",
                "schema-id": 0,
                "fields": [{"id": 1, "name": "x", "required": True, "type": "long"}],
            },
            {
                "type": "struct",
                "schema-id": 1,
                "identifier-field-ids": [1, 2],
                "fields": [
                    {"id": 1, "name": "x", "required": True, "type": "long"},
                    {"id": 2, "name": "y", "required": True, "type": "long", "doc": "comment"},
                    {"id": 3, "name": "z", "required": True, "type": "long"},
                ],
            },
        ],
        "default-spec-id": 0,
        "partition-specs": [
            {
                "spec-id": 0,
                "fields": [
                    {"name": "x", "transform": "identity", "source-id": 1, "field-id": 1000}
                ],
            }
        ],
        "last-partition-id": 1000,
        "default-sort-order-id": 3,
        "sort-orders": [
            {
                "order-id": 3,
                "fields": [
                    {
                        "transform": "identity",
                        "source-id": 2,
                        "direction": "asc",
                        "null-order": "nulls-first",
                    },
                    {
                        "transform": "bucket[4]",
                        "source-id": 3,
                        "direction": "desc",
                        "null-order": "nulls-last",
                    },
                ],
            }
        ],
        "properties": {"read.split.target.size": "134217728"},
        "current-snapshot-id": 3055729675574597004,
        "refs": {
            "main": {"snapshot-id": 3055729675574597004, "type": "branch"},
            "old": {"snapshot-id": 3051729675574597004, "type": "tag", "max-ref-age-ms": 10000000},
        },
        "snapshots": [
            {
                "snapshot-id": 3051729675574597004,
                "timestamp-ms": 1515100955770,
                "summary": {"operation": "append"},
                "manifest-list": "s3://a/b/1.avro",
            },
            {
                "sequence-number": 1,
                "snapshot-id": 3055729675574597004,
                "parent-snapshot-id": 3051729675574597004,
                "timestamp-ms": 1555100955770,
                "summary": {"operation": "append", "added-records": "3"},
                "manifest-list": "s3://a/b/2.avro",
                "schema-id": 1,
            },
        ],
        "statistics": [],
        "partition-statistics": [],
        "snapshot-log": [
            {"timestamp-ms": 1515100955770, "snapshot-id": 3051729675574597004},
            {"timestamp-ms": 1555100955770, "snapshot-id": 3055729675574597004},
        ],
        "metadata-log": [{"timestamp-ms": 1515100955769, "metadata-file": "s3://bucket/1.json"}],
    }


def version_1():
    """A version 1 file with required fields only."""
    return {
        "format-version": 1,
        "location": "s3://bucket/test/location",
        "last-updated-ms": 1602638573874,
        "last-column-id": 3,
        "schema": {
            "type": "struct",
            "fields": [
                {"id": 1, "name": "x", "required": True, "type": "long"},
                {"id": 2, "name": "y", "required": True, "type": "long"},
                {"id": 3, "name": "z", "required": True, "type": "long"},
            ],
        },
        "partition-spec": [
            {"name": "x", "transform": "identity", "source-id": 1},
            {"name": "y_bucket", "transform": "bucket[4]", "source-id": 2},
        ],
    }


def parsed(document):
    return TableMetadata.from_json(json.dumps(document), "/t/metadata/7.json")


def test_a_version_2_file_is_written_back_as_it_was():
    assert json.loads(parsed(version_2()).to_json()) == version_2()


def test_a_version_2_file_is_read():
    metadata = parsed(version_2())
    assert metadata.schema().identifier_field_ids == (1, 2)
    assert metadata.schema_by_id(0).fields[0].name == "x"
    assert metadata.spec().fields[0].field_id == 1000
    assert metadata.sort_order().fields[1].transform == BucketTransform(4)
    assert metadata.current_snapshot().summary["added-records"] == "3"
    assert metadata.current_snapshot() == metadata.snapshot_by_name("main")
    assert metadata.snapshot_by_name("old").sequence_number == 0
    assert metadata.snapshot_by_name("new") is None
    assert metadata.snapshot_by_id(1) is None
    assert metadata.snapshot_as_of(1555100955769).snapshot_id == 3051729675574597004
    with pytest.raises(NoSuchSnapshotError):
        metadata.snapshot_as_of(1515100955769)


def test_a_version_1_file_may_lack_everything_optional():
    metadata = parsed(version_1())
    assert metadata.table_uuid is None
    assert metadata.schemas == (metadata.schema(),)
    assert [f.field_id for f in metadata.spec().fields] == [1000, 1001]
    assert metadata.last_partition_id == 1001
    assert metadata.sort_order() == UNSORTED_SORT_ORDER
    assert metadata.current_snapshot() is None
    assert metadata.refs == {}


def test_a_version_1_file_is_written_for_old_and_new_readers():
    out = json.loads(parsed(version_1()).to_json())
    assert out["schema"] == out["schemas"][0]
    assert out["partition-spec"] == out["partition-specs"][0]["fields"]
    assert out["current-snapshot-id"] == -1
    assert "last-sequence-number" not in out
    assert parsed(out) == parsed(version_1())


def test_early_snapshots_list_their_manifests_themselves():
    document = version_1()
    document["snapshots"] = [
        {"snapshot-id": 1, "timestamp-ms": 1515100955770, "manifests": ["/a.avro", "/b.avro"]}
    ]
    document["current-snapshot-id"] = 1
    metadata = parsed(document)
    assert metadata.current_snapshot().manifests == ("/a.avro", "/b.avro")
    assert metadata.current_snapshot().manifest_list is None
    assert metadata.refs == {"main": SnapshotRef(1)}
    assert json.loads(metadata.to_json())["snapshots"] == document["snapshots"]


def test_unknown_fields_are_kept():
    document = version_2()
    document["future"] = {"a": [1, None]}
    document["snapshots"][0]["key-id"] = "k"
    out = json.loads(parsed(document).to_json())
    assert out == document
    snapshot = parsed(document).snapshots[0]
    assert Snapshot.from_json(snapshot.to_json()) == snapshot
    assert snapshot.to_json()["key-id"] == "k"


REQUIRED_2 = [
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "last-column-id",
    "schemas",
    "current-schema-id",
    "partition-specs",
    "default-spec-id",
    "last-partition-id",
    "sort-orders",
    "default-sort-order-id",
]


@pytest.mark.parametrize("field", REQUIRED_2)
def test_version_2_names_the_required_field_that_is_missing(field):
    document = version_2()
    del document[field]
    with pytest.raises(CorruptFileError, match=field) as caught:
        parsed(document)
    assert "/t/metadata/7.json" in caught.value.message
    assert caught.value.context == {"path": "/t/metadata/7.json"}


@pytest.mark.parametrize(
    "field", ["location", "last-updated-ms", "last-column-id", "schema", "partition-spec"]
)
def test_version_1_names_the_required_field_that_is_missing(field):
    document = version_1()
    del document[field]
    with pytest.raises(CorruptFileError, match=field):
        parsed(document)


@pytest.mark.parametrize("field", [f for f in version_2() if f != "format-version"])
def test_a_field_of_the_wrong_type_is_named(field):
    document = version_2()
    document[field] = 1.5
    with pytest.raises(CorruptFileError, match=field):
        parsed(document)


def broken(change):
    document = version_2()
    change(document)
    return document


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d["schemas"].append(d["schemas"][0]), "schemas.*0 occurs twice"),
        (lambda d: d["partition-specs"].append(d["partition-specs"][0]), "partition-specs.*0"),
        (lambda d: d["sort-orders"].append(d["sort-orders"][0]), "sort-orders.*3"),
        (lambda d: d["snapshots"].append(d["snapshots"][0]), "snapshots.*305172"),
        (lambda d: d.update({"current-schema-id": 9}), "schemas.*9"),
        (lambda d: d.update({"default-spec-id": 9}), "partition-specs.*9"),
        (lambda d: d.update({"default-sort-order-id": 9}), "sort-orders.*9"),
        (lambda d: d.update({"current-snapshot-id": 9}), "snapshots.*9"),
        (lambda d: d["refs"]["old"].update({"snapshot-id": 9}), "'old'.*9"),
        (lambda d: d["refs"]["main"].update({"snapshot-id": 3051729675574597004}), "main"),
        (lambda d: d["refs"]["old"].update({"type": "leaf"}), "refs.*leaf"),
        (lambda d: d["refs"]["old"].update({"min-snapshots-to-keep": 1}), "refs.*tag"),
        (lambda d: d.update({"last-sequence-number": 0}), "sequence number 1"),
        (lambda d: d["schemas"][1]["fields"][0].update({"id": 2}), "schemas.*id 2"),
        (lambda d: d["schemas"][1]["fields"][0].update({"type": "int32"}), "schemas.*int32"),
        (lambda d: d["snapshots"][0].pop("manifest-list"), "snapshots.*manifest-list"),
        (lambda d: d["snapshots"][0].update({"timestamp-ms": "x"}), "snapshots.*timestamp-ms"),
        (lambda d: d["snapshots"].append(7), "snapshots"),
        (lambda d: d["snapshot-log"].append({}), "snapshot-log"),
        (lambda d: d["metadata-log"].append({}), "metadata-log"),
        (lambda d: d["snapshot-log"].reverse(), "snapshot-log.*1515100955770 comes after"),
        (
            lambda d: d["metadata-log"].append({"metadata-file": "m", "timestamp-ms": 9}),
            "metadata-log.*9 comes after 1515100955769",
        ),
        (lambda d: d.update({"last-updated-ms": 1555100895769}), "before the end of snapshot-log"),
        (lambda d: d.update({"table-uuid": "x"}), "table-uuid"),
        (lambda d: d.update({"format-version": 0}), "format-version"),
        (lambda d: d["partition-specs"][0]["fields"].append({"name": "n"}), "partition-specs"),
    ],
)
def test_metadata_that_contradicts_itself_is_refused(change, named):
    with pytest.raises(CorruptFileError, match=named):
        parsed(broken(change))


def test_clocks_may_differ_by_a_minute():
    document = version_2()
    document["last-updated-ms"] = 1555100955770 - 60_000
    assert parsed(document).last_updated_ms == 1555100895770


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d.update({"format-version": 4}), "v4"),
        (lambda d: d["schemas"][1]["fields"][0].update({"type": "timestamp_ns"}), "v3"),
        (
            lambda d: d["partition-specs"][0]["fields"][0].update(
                {"source-id": None, "source-ids": [1, 2]}
            ),
            "v3",
        ),
    ],
)
def test_later_format_versions_are_refused_by_name(change, named):
    with pytest.raises(UnsupportedError, match=named) as caught:
        parsed(broken(change))
    assert "/t/metadata/7.json" in caught.value.message


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b'{"a": 1', b"\xff\xfe{}", b"[]", b"null", gzip.compress(b"{}"), b"[" * 100000],
)
def test_bytes_that_are_no_json_object_are_refused(raw):
    with pytest.raises(CorruptFileError, match=r"/m\.json"):
        TableMetadata.from_json(raw, "/m.json")


LARGE = 200 << 20


def large_garbage(kind):
    """200 MB that are no metadata."""
    if kind == "cut off":
        one = json.dumps(version_2()["snapshots"][1]).encode() + b","
        return (b'{"format-version":2,"snapshots":[' + one * (LARGE // len(one)))[:LARGE]
    return b"{" + b"\xff" * LARGE + b"}" if kind == "not UTF-8" else b" " * LARGE


@contextmanager
def memory(limit):
    """No more than so many bytes are held at any time."""
    gc.collect()
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("kind", "copies"), sampled([("", 0.1), ("cut off", 0.1), ("not UTF-8", 2.1)], keep=1)
)
def test_huge_garbage_is_refused_without_being_parsed(kind, copies):
    raw = large_garbage(kind)
    with memory(copies * LARGE), pytest.raises(CorruptFileError, match="not a JSON") as caught:
        TableMetadata.from_json(raw, "/t/metadata/7.json")
    assert len(caught.value.message) < 500
    assert "/t/metadata/7.json" in caught.value.message


def test_half_of_a_surrogate_pair_is_refused_wherever_it_is(tmp_path):
    file = tmp_path / "v1.metadata.json"
    sound = json.dumps(version_2())
    for name in ('"location"', '"properties"', '"last-updated-ms"'):
        file.write_text(sound.replace(name, f'"odd\\\\ud800": "x", {name}'))
        read_metadata(FileIO(), str(file))  # a backslash and five letters
        file.write_text(sound.replace(name, f'"odd\\ud800": "x", {name}'))
        with pytest.raises(CorruptFileError, match="half of a surrogate pair") as caught:
            read_metadata(FileIO(), str(file))
        assert "environment variable" not in caught.value.hint


def test_a_huge_file_of_zeros_is_refused_by_name(tmp_path):
    file = tmp_path / "v1.metadata.json"
    file.touch()
    os.truncate(file, LARGE)
    with memory(1.1 * LARGE), pytest.raises(CorruptFileError, match="v1") as caught:
        read_metadata(FileIO(), str(file))
    assert "it begins with" in caught.value.message


@settings(deadline=None)
@given(cut=st.integers(0, 1000), data=st.data())
def test_a_file_that_was_cut_off_is_never_read(cut, data):
    raw = json.dumps(version_2()).encode()
    length = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(CorruptFileError):
        TableMetadata.from_json(raw[:length], "/m.json")


def test_a_new_table_is_as_java_creates_it():
    metadata = fresh(owner="me", format_version="2")
    assert metadata.format_version == 2
    assert [f.field_id for f in metadata.schema().fields] == [1, 2, 3]
    assert metadata.schema().schema_id == 0
    assert metadata.schema().identifier_field_ids == (1,)
    assert metadata.spec() == PartitionSpec(
        0,
        (
            PartitionField(2, 1000, DayTransform(), "at_day"),
            PartitionField(1, 1001, BucketTransform(16), "id_bucket"),
        ),
    )
    assert metadata.last_partition_id == 1001
    assert metadata.last_column_id == 3
    assert metadata.sort_order().order_id == 1
    assert [f.source_id for f in metadata.sort_order().fields] == [3, 1]
    assert metadata.properties == {"owner": "me", "write.parquet.compression-codec": "zstd"}
    assert metadata.current_snapshot_id is None
    assert json.loads(metadata.to_json())["current-snapshot-id"] == -1


def test_an_unpartitioned_unsorted_table_has_spec_0_and_order_0():
    metadata = new_table_metadata(SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "/t")
    assert metadata.spec() == UNPARTITIONED_PARTITION_SPEC
    assert metadata.last_partition_id == 999
    assert metadata.sort_orders == (UNSORTED_SORT_ORDER,)


def test_the_schema_of_a_spec_need_not_have_what_is_void():
    """Version 1 keeps fields of columns that were dropped before those of the others came."""
    schemas = tuple(
        Schema((NestedField(number, f"c{number}", LongType()),), number) for number in (0, 1, 2)
    )
    table = replace(
        new_table_metadata(SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "/t"),
        schemas=schemas,
        current_schema_id=2,
    )
    spec = PartitionSpec(
        PartitionField(0, 1000, VoidTransform(), "gone"),
        PartitionField(1, 1001, BucketTransform(4), "c1_bucket"),
    )
    assert table.schema_of(spec).schema_id == 1
    assert table.schema_of(PartitionSpec(spec.fields[0])).schema_id == 2


def test_a_new_table_of_version_4_is_refused():
    with pytest.raises(UnsupportedError, match="v4"):
        fresh(format_version="4")


@pytest.mark.parametrize(
    "field",
    [
        PartitionField(99, 1000, DayTransform(), "d"),
        PartitionField(9, 1000, DayTransform(), "d"),
        PartitionField(7, 1000, BucketTransform(4), "city"),
        PartitionField(7, 1000, BucketTransform(4), ""),
    ],
)
def test_a_spec_that_does_not_fit_the_schema_makes_no_table(field):
    with pytest.raises(ValidationError):
        new_table_metadata(SCHEMA, PartitionSpec(0, (field,)), ORDER, "/t")


@pytest.mark.parametrize("version", ["1", "2"])
def test_pyiceberg_reads_what_we_write_and_we_read_what_it_writes(version):
    ours = fresh(format_version=version)
    peer = TableMetadataUtil.parse_raw(ours.to_json())
    assert peer.table_uuid == ours.table_uuid
    assert (
        json.loads(peer.schema().model_dump_json(by_alias=True, exclude_none=True))
        == ours.schema().to_json()
    )
    assert str(peer.spec().fields[1].transform) == "bucket[16]"
    back = TableMetadata.from_json(peer.model_dump_json(by_alias=True))
    assert back.schema() == ours.schema()
    assert back.spec() == ours.spec()
    assert back.sort_order() == ours.sort_order()
    assert back.properties == ours.properties


def test_pyiceberg_reads_a_file_with_history_that_we_wrote():
    peer = TableMetadataUtil.parse_raw(parsed(version_2()).to_json())
    assert peer.current_snapshot().snapshot_id == 3055729675574597004
    assert sorted(peer.refs) == ["main", "old"]


@settings(deadline=None)
@given(
    text=st.text(st.characters(exclude_categories=["Cs"])),
    number=st.integers(-(2**63), 2**63 - 1),
)
def test_any_text_and_number_survives_a_round_trip(text, number):
    document = version_2()
    document["properties"] = {text: text}
    document["location"] = text
    document["snapshots"][0]["summary"][text] = text
    document["extra"] = [number, text]
    metadata = parsed(document)
    raw = metadata.to_json().encode()
    assert json.loads(raw) == document
    assert TableMetadata.from_json(raw) == metadata


def test_a_file_is_compressed_when_its_name_says_so(tmp_path):
    io, metadata = FileIO(), fresh()
    plain, zipped = f"{tmp_path}/1.metadata.json", f"{tmp_path}/1.gz.metadata.json"
    write_metadata(io, metadata, plain)
    write_metadata(io, metadata, zipped)
    with gzip.open(zipped) as file:
        assert file.read() == io.read(plain)
    old = f"{tmp_path}/1.metadata.json.gz"
    io.create(old, io.read(zipped))
    assert [read_metadata(io, p) for p in (plain, zipped, old)] == [metadata] * 3


def test_what_only_looks_compressed_is_named(tmp_path):
    io = FileIO()
    good = gzip.compress(fresh().to_json().encode())
    for number, data in enumerate((b"{}", b"", good[:-20], good[:100])):
        location = f"{tmp_path}/{number}.gz.metadata.json"
        io.create(location, data)
        with pytest.raises(CorruptFileError, match=location):
            read_metadata(io, location)


def test_a_metadata_file_is_never_overwritten(tmp_path):
    io, location = FileIO(), f"{tmp_path}/1.metadata.json"
    write_metadata(io, fresh(), location)
    before = io.read(location)
    with pytest.raises(FileAlreadyExistsError):
        write_metadata(io, fresh(), location)
    assert io.read(location) == before


def test_metadata_files_are_numbered():
    metadata = fresh()
    first = new_metadata_location(metadata, None)
    assert first.startswith("/t/metadata/00000-")
    assert first.endswith(".metadata.json")
    uuid.UUID(first.split("/00000-")[1].removesuffix(".metadata.json"))
    zipped = fresh(**{"write.metadata.compression-codec": "gzip"})
    second = new_metadata_location(zipped, first)
    assert second.startswith("/t/metadata/00001-")
    assert second.endswith(".gz.metadata.json")
    assert metadata_version("/x/123456-a.metadata.json") == 123456
    assert metadata_version("/x/v3.metadata.json") == -1


def test_histories_are_decoded_only_where_somebody_looks():
    metadata = parsed(version_2())
    assert metadata.snapshots[-1].schema_id == 1
    assert [s.snapshot_id for s in metadata.snapshots] == [3051729675574597004, 3055729675574597004]
    assert metadata.snapshot_log[0] == SnapshotLogEntry(3051729675574597004, 1515100955770)
    assert metadata.snapshots[:1] == (metadata.snapshots[0],)
    assert (metadata.snapshots[0],) != metadata.snapshots
    assert repr(metadata.snapshots).startswith("(Snapshot(")
