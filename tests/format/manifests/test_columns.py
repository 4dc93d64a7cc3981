from __future__ import annotations

import io as bytes_io
import json
import math
import random
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

import fastavro
import pytest
from hypothesis import given, settings, strategies as st

from icecomb.format.avro.schema import avro_schema
from icecomb.format.errors import CorruptFileError, UnsupportedError, ValidationError
from icecomb.format.manifests.cache import ManifestCache
from icecomb.format.manifests.decoder import decode_manifest
from icecomb.format.manifests.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.reader import read_manifest_columns
from icecomb.format.manifests.schema import STATISTICS, entry_type
from icecomb.format.manifests.writer import assign_sequence_number
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    NestedField,
    StringType,
    StructType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.written_manifest import write_manifest

IO = FileIO()
SCHEMA = Schema(
    (
        NestedField(1, "d", DateType()),
        NestedField(2, "u", UUIDType()),
        NestedField(3, "n", DecimalType(10, 3)),
        NestedField(4, "s", StringType()),
        NestedField(5, "f", DoubleType()),
    )
)
SPEC = PartitionSpec(
    1,
    tuple(
        PartitionField(i, 999 + i, parse_transform("identity"), name)
        for i, name in enumerate("dunsf", 1)
    ),
)

optional_map = st.none() | st.dictionaries(
    st.integers(1, 2**31 - 1), st.integers(0, 2**62), max_size=5
)
optional_bounds = st.none() | st.dictionaries(st.integers(1, 9), st.binary(max_size=20), max_size=5)
files = st.builds(
    DataFile,
    file_path=st.text(st.characters(exclude_categories=("Cs",)), min_size=1),
    file_format=st.sampled_from(FileFormat),
    partition=st.tuples(
        st.none() | st.integers(-(2**31), 2**31 - 1),
        st.none() | st.uuids(),
        st.none() | st.integers(-(10**9), 10**9).map(lambda v: Decimal(v).scaleb(-3)),
        st.none() | st.text(st.characters(exclude_categories=("Cs",))),
        st.none() | st.floats(allow_nan=False),
    ),
    record_count=st.integers(0, 2**62),
    file_size_in_bytes=st.integers(0, 2**53),
    column_sizes=optional_map,
    value_counts=optional_map,
    null_value_counts=optional_map,
    nan_value_counts=optional_map,
    lower_bounds=optional_bounds,
    upper_bounds=optional_bounds,
    key_metadata=st.none() | st.binary(),
    split_offsets=st.none() | st.lists(st.integers(0, 2**62)).map(tuple),
    sort_order_id=st.none() | st.integers(0, 9),
    spec_id=st.just(1),
)
numbers = st.integers(1, 2**40)
entry = st.builds(
    ManifestEntry,
    status=st.sampled_from((ManifestEntryStatus.EXISTING, ManifestEntryStatus.DELETED)),
    snapshot_id=numbers,
    sequence_number=numbers,
    file_sequence_number=numbers,
    data_file=files,
)


def written(folder, entries, name="m.avro", spec=SPEC, schema=SCHEMA) -> ManifestFile:
    (folder / name).unlink(missing_ok=True)
    manifest = write_manifest(
        IO, str(folder / name), entries, format_version=2, spec=spec, schema=schema, snapshot_id=9
    )
    return assign_sequence_number(manifest, 9, 5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("manifests")


@settings(max_examples=40, deadline=None)
@given(st.lists(entry, max_size=8))
def test_whatever_is_written_is_read(folder, entries):
    manifest = written(folder, entries)
    columns = read_manifest_columns(IO, manifest, cache=None)
    assert columns.entries() == entries
    rows = [i for i in range(len(entries)) if i % 2]
    assert columns.entries(rows) == [entries[i] for i in rows]
    half = len(entries) // 2
    assert columns.entries(range(half)) == entries[:half]
    assert columns.entries(range(half, len(entries))) == entries[half:]
    for name in STATISTICS:
        for column_id in (1, 5):
            expected = [(getattr(e.data_file, name) or {}).get(column_id) for e in entries]
            assert columns.statistic(name, column_id).to_pylist() == expected


def some_files(count=50) -> list[DataFile]:
    draw = random.Random(7)
    return [
        DataFile(
            file_path=f"/t/{i}",
            partition=(i, UUID(int=i % 3), Decimal(i % 5).scaleb(-3), f"é{i % 4}", i / 2),
            record_count=i,
            file_size_in_bytes=2 * i,
            value_counts={c: draw.randrange(100) for c in range(1, 6)},
            lower_bounds={c: bytes([draw.randrange(256)]) for c in range(1, 6)},
            spec_id=1,
        )
        for i in range(count)
    ]


def added(file: DataFile) -> ManifestEntry:
    return ManifestEntry(status=ManifestEntryStatus.ADDED, data_file=file)


def test_partition_columns_hold_internal_values(tmp_path):
    columns = read_manifest_columns(IO, written(tmp_path, map(added, some_files(3))), cache=None)
    assert [c.field_id for c in columns.partition_columns] == [1000, 1001, 1002, 1003, 1004]
    assert [str(columns.partition(i).type) for i in range(5)] == [
        "int32",
        "fixed_size_binary[16]",
        "decimal128(10, 3)",
        "large_string",
        "double",
    ]
    assert [columns.partition(i).to_pylist() for i in range(5)] == [
        [0, 1, 2],
        [UUID(int=i).bytes for i in range(3)],
        [Decimal("0.000"), Decimal("0.001"), Decimal("0.002")],
        ["é0", "é1", "é2"],
        [0.0, 0.5, 1.0],
    ]


def test_only_the_statistics_that_were_asked_for_are_there(tmp_path):
    manifest = written(tmp_path, map(added, some_files()))
    columns = read_manifest_columns(IO, manifest, ["lower_bounds"], cache=None)
    assert columns.statistics == {"lower_bounds"}
    with pytest.raises(ValidationError, match="value_counts"):
        columns.column("value_counts")
    with pytest.raises(ValidationError, match="nonsense"):
        columns.column("nonsense")
    (file,) = columns.data_files([3])
    assert (file.value_counts, file.lower_bounds) == (None, some_files()[3].lower_bounds)
    without = columns.without_statistics()
    assert without.statistics == set()
    assert without.nbytes < columns.nbytes
    assert without.data_files([3])[0].lower_bounds is None


def test_live_rows_are_all_but_the_deleted_ones(tmp_path):
    entries = [
        ManifestEntry(
            status=status, snapshot_id=1, sequence_number=1, file_sequence_number=1, data_file=file
        )
        for status, file in zip(ManifestEntryStatus, some_files(3), strict=True)
    ]
    columns = read_manifest_columns(IO, written(tmp_path, entries), (), cache=None)
    assert columns.live.to_pylist() == [True, True, False]


def test_partition_tuples_come_in_the_order_of_the_spec(tmp_path):
    manifest = written(tmp_path, map(added, some_files(2)))
    turned = PartitionSpec(1, SPEC.fields[::-1])
    columns = read_manifest_columns(IO, manifest, (), spec=turned, cache=None)
    assert [c.field_id for c in columns.partition_columns] == [1004, 1003, 1002, 1001, 1000]
    assert [f.partition for f in columns.data_files()] == [f.partition[::-1] for f in some_files(2)]


def test_a_decoded_manifest_is_read_once_and_more_is_added_when_asked(tmp_path):
    manifest = written(tmp_path, map(added, some_files()))
    cache = ManifestCache()
    first = read_manifest_columns(IO, manifest, (), cache=cache)
    assert read_manifest_columns(IO, manifest, (), cache=cache) is first
    more = read_manifest_columns(IO, manifest, ["value_counts"], cache=cache)
    assert more is not first
    assert read_manifest_columns(IO, manifest, (), cache=cache) is more
    cache.clear()
    assert read_manifest_columns(IO, manifest, (), cache=cache) is not more
    # the numbers to inherit are part of what was read
    later = replace(manifest, sequence_number=6)
    found = read_manifest_columns(IO, later, (), cache=cache)
    assert set(found.column("sequence_number").to_pylist()) == {6}


def test_the_cache_is_bounded(tmp_path):
    manifests = [written(tmp_path, map(added, some_files()), f"m{i}") for i in range(4)]
    one = read_manifest_columns(IO, manifests[0], (), cache=None).nbytes
    cache = ManifestCache(limit=2 * one + 10)
    kept = [read_manifest_columns(IO, manifest, (), cache=cache) for manifest in manifests]
    assert cache.find(manifests[0], frozenset()) is None
    assert cache.find(manifests[3], frozenset()) is kept[3]
    assert cache.find(manifests[2], frozenset()) is kept[2]
    tiny = ManifestCache(limit=1)
    read_manifest_columns(IO, manifests[0], (), cache=tiny)
    assert tiny.find(manifests[0], frozenset()) is None


def avro_bytes(schema, records, **options) -> bytes:
    out = bytes_io.BytesIO()
    fastavro.writer(out, schema, records, **options)
    return out.getvalue()


MANIFEST = ManifestFile(
    manifest_path="/t/m.avro", manifest_length=0, sequence_number=4, added_snapshot_id=9
)


def strip(schema, *drop):
    """The schema without these keys anywhere, as other writers leave them out."""
    if isinstance(schema, dict):
        return {key: strip(value, *drop) for key, value in schema.items() if key not in drop}
    return [strip(item, *drop) for item in schema] if isinstance(schema, list) else schema


def nulls_last(schema):
    if isinstance(schema, dict):
        return {key: nulls_last(value) for key, value in schema.items() if key != "default"}
    if isinstance(schema, list) and schema and schema[0] == "null":
        return [nulls_last(schema[1]), "null"]
    return [nulls_last(item) for item in schema] if isinstance(schema, list) else schema


PARTITION = StructType((NestedField(1000, "p", LongType()),))
RECORD = {
    "status": 1,
    "snapshot_id": None,
    "sequence_number": None,
    "file_sequence_number": None,
    "data_file": {
        "content": 0,
        "file_path": "/t/a",
        "file_format": "parquet",
        "partition": {"p": 5},
        "record_count": 3,
        "file_size_in_bytes": 4,
        "column_sizes": [{"key": 1, "value": 7}],
        "value_counts": None,
        "lower_bounds": [{"key": 1, "value": b"x"}, {"key": 2, "value": b""}],
        "equality_ids": None,
        "split_offsets": [4],
    },
}
EXPECTED = DataFile(
    file_path="/t/a",
    partition=(5,),
    record_count=3,
    file_size_in_bytes=4,
    column_sizes={1: 7},
    lower_bounds={1: b"x", 2: b""},
    split_offsets=(4,),
)
FULL = avro_schema(entry_type(2, PARTITION), "manifest_entry")


@pytest.mark.parametrize(
    "schema",
    [
        FULL,
        strip(FULL, "field-id", "element-id", "logicalType"),
        nulls_last(FULL),
        {**FULL, "name": "entry", "namespace": "org.example"},
    ],
    ids=["full", "without ids", "null last", "with a namespace"],
)
def test_manifests_are_read_however_their_schema_is_spelled(schema):
    columns = decode_manifest(avro_bytes(schema, [RECORD]), MANIFEST)
    (found,) = columns.entries()
    assert found.data_file == EXPECTED
    assert (found.snapshot_id, found.sequence_number, found.file_sequence_number) == (9, 4, 4)


def only(schema, *names):
    fields = [
        {**f, "type": only(f["type"], *names)} if f["name"] == "data_file" else f
        for f in schema["fields"]
        if f["name"] in names
    ]
    return {**schema, "fields": fields}


def test_a_manifest_of_nothing_but_the_required_fields_is_read():
    schema = only(
        FULL,
        "status",
        "data_file",
        "file_path",
        "file_format",
        "partition",
        "record_count",
        "file_size_in_bytes",
    )
    (found,) = decode_manifest(avro_bytes(schema, [RECORD]), MANIFEST).entries()
    assert found.data_file == replace(
        EXPECTED, column_sizes=None, lower_bounds=None, split_offsets=None
    )
    assert found.data_file.content is DataFileContent.DATA
    assert (found.snapshot_id, found.sequence_number) == (9, 4)


def test_maps_with_text_keys_are_read():
    fields = [
        {**f, "type": ["null", {"type": "map", "values": "long"}]}
        if f["name"] == "column_sizes"
        else f
        for f in FULL["fields"][-1]["type"]["fields"]
    ]
    data_file = {**FULL["fields"][-1], "type": {**FULL["fields"][-1]["type"], "fields": fields}}
    schema = {**FULL, "fields": [*FULL["fields"][:-1], data_file]}
    record = {**RECORD, "data_file": {**RECORD["data_file"], "column_sizes": {"1": 7}}}
    (found,) = decode_manifest(avro_bytes(schema, [record]), MANIFEST).data_files()
    assert found == EXPECTED


def test_fields_of_later_versions_are_passed_over():
    later = {"name": "from_the_future", "type": ["null", "long"], "field-id": 9999}
    data_file = FULL["fields"][-1]
    inner = {**data_file["type"], "fields": [later, *data_file["type"]["fields"]]}
    schema = {**FULL, "fields": [later, *FULL["fields"][:-1], {**data_file, "type": inner}]}
    (found,) = decode_manifest(avro_bytes(schema, [RECORD]), MANIFEST).data_files()
    assert found == EXPECTED


def test_a_file_format_that_does_not_exist_is_named():
    record = {**RECORD, "data_file": {**RECORD["data_file"], "file_format": "XLS"}}
    with pytest.raises(
        CorruptFileError, match=r"/t/m\.avro tracks files of the unknown format 'XLS'"
    ):
        decode_manifest(avro_bytes(FULL, [record]), MANIFEST)


@pytest.mark.parametrize("field", ["status", "content"])
def test_a_code_that_does_not_exist_is_refused(field):
    record = {**RECORD, "status": 3} if field == "status" else RECORD
    if field == "content":
        record = {**RECORD, "data_file": {**RECORD["data_file"], "content": 5}}
    with pytest.raises(CorruptFileError, match=rf"/t/m\.avro holds an entry of unknown {field}"):
        decode_manifest(avro_bytes(FULL, [record]), MANIFEST)


@pytest.mark.parametrize("size", [17, 3000])
def test_a_partition_value_that_no_decimal_has_is_refused(size):
    """Python converts no number of more than 4,300 digits, others have 38 at most."""
    schema = json.dumps(avro_schema(entry_type(2, PARTITION), "manifest_entry"))
    # fastavro writes no such decimal, but bytes of a kind that it does not know
    kind = '{"type": "bytes", "logicalType": "decimaX", "precision": 38, "scale": 2}'
    assert schema.count('"name": "p", "type": ["null", "long"]') == 1
    named = schema.replace('"p", "type": ["null", "long"]', f'"p", "type": ["null", {kind}]')
    record = {**RECORD, "data_file": {**RECORD["data_file"], "partition": {"p": b"\x7f" * size}}}
    data = avro_bytes(json.loads(named), [record]).replace(b"decimaX", b"decimal")
    with pytest.raises(CorruptFileError, match="not a readable manifest"):
        decode_manifest(data, MANIFEST)


def damaged(data: bytes, draw: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(draw.choice((1, 3))):
        out[draw.randrange(4, data.index(b"avro.codec"))] = draw.randrange(256)
    return bytes(out)


def test_a_damaged_header_is_read_or_refused_but_never_surprises(first_seed):
    data, draw = avro_bytes(FULL, [RECORD]), random.Random(3 + first_seed)
    refused = 0
    for _ in range(300):
        try:
            decode_manifest(damaged(data, draw), MANIFEST).entries()
        except (CorruptFileError, UnsupportedError) as error:  # noqa: PERF203
            refused += 1
            assert "/t/m.avro" in str(error)  # noqa: PT017
    assert refused > 30


def test_nan_partitions_come_back(tmp_path):
    schema = Schema((NestedField(1, "f", DoubleType()),))
    spec = PartitionSpec(0, (PartitionField(1, 1000, parse_transform("identity"), "f"),))
    file = DataFile(file_path="/t/a", partition=(math.nan,), record_count=1, file_size_in_bytes=1)
    manifest = written(tmp_path, [added(file)], spec=spec, schema=schema)
    (found,) = read_manifest_columns(IO, manifest, (), cache=None).data_files()
    assert math.isnan(found.partition[0])
