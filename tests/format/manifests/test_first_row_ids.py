"""Row ids that data files inherit from their manifest, and manifests from their commit.

Worked example: specification, First Row ID Assignment.
"""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from itertools import chain
from pathlib import Path

import fastavro
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from icecomb.format.errors import CorruptFileError, ValidationError
from icecomb.format.manifests.cache import ManifestCache
from icecomb.format.manifests.columns import joined
from icecomb.format.manifests.decoder import decode_together
from icecomb.format.manifests.encoded_file import DataFileForm
from icecomb.format.manifests.entry_encoder import EntryEncoder
from icecomb.format.manifests.manifest import (
    UNASSIGNED_SEQ,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.manifest_list import read_manifests, write_manifest_list
from icecomb.format.manifests.reader import read_each_columns, read_manifest, read_manifest_columns
from icecomb.format.manifests.writer import (
    ManifestWriter,
    assign_first_row_ids,
)
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.transform import IdentityTransform
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.written_manifest import write_manifest

ADDED, EXISTING, DELETED = (
    ManifestEntryStatus.ADDED,
    ManifestEntryStatus.EXISTING,
    ManifestEntryStatus.DELETED,
)
IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "p", LongType()))
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"), spec_id=3)


def entry(status, rows, own=None, number=0, **fields):
    return ManifestEntry(
        status=status,
        snapshot_id=None if status is ADDED else 7,
        sequence_number=None if status is ADDED else 5,
        file_sequence_number=None if status is ADDED else 5,
        data_file=DataFile(
            file_path=f"/t/data/{number}.parquet",
            partition=(1,),
            record_count=rows,
            file_size_in_bytes=100,
            first_row_id=own,
            spec_id=3,
            **fields,
        ),
    )


def written(folder, entries, first=None, *, version=3, content=ManifestContent.DATA, name="m"):
    manifest = write_manifest(
        IO,
        str(folder / f"{name}.avro"),
        entries,
        format_version=version,
        spec=SPEC,
        schema=SCHEMA,
        snapshot_id=9,
        content=content,
    )
    return replace(manifest, sequence_number=6, min_sequence_number=5, first_row_id=first)


def ids(manifest, **options):
    return [e.data_file.first_row_id for e in read_manifest(IO, manifest, spec=SPEC, **options)]


def listed(number, added, existing, first=None, content=ManifestContent.DATA):
    return ManifestFile(
        manifest_path=f"/t/m{number}.avro",
        manifest_length=1,
        content=content,
        added_rows_count=added,
        existing_rows_count=existing,
        deleted_rows_count=1000,
        added_files_count=1,
        existing_files_count=1,
        deleted_files_count=1,
        first_row_id=first,
        added_snapshot_id=9,
    )


def test_manifests_without_an_id_are_numbered_as_in_the_specification():
    new = [listed(1, 100, 25), listed(2, 0, 100), listed(3, 125, 25)]
    manifests, next_row_id = assign_first_row_ids(new, 1000)
    assert [m.first_row_id for m in manifests] == [1000, 1125, 1225]
    assert next_row_id == 1375


def test_numbered_manifests_and_those_of_deletes_take_no_ids():
    given = [
        listed(1, 5, 0, 70),
        listed(2, 5, 0, content=ManifestContent.DELETES),
        listed(3, 5, 1),
        listed(4, 0, 0),
    ]
    manifests, next_row_id = assign_first_row_ids(given, 90)
    assert [m.first_row_id for m in manifests] == [70, None, 90, 96]
    assert next_row_id == 96


def test_manifests_with_the_same_ids_are_refused():
    first, second = listed(1, 5, 5, 30), listed(2, 1, 0, 39)
    with pytest.raises(CorruptFileError, match=r"/t/m1.avro and /t/m2.avro .* from 39 on"):
        assign_first_row_ids([second, first], 40)
    with pytest.raises(CorruptFileError, match=r"/t/m2.avro and new rows .* from 39 on"):
        assign_first_row_ids([second], 39)
    empty = listed(3, 0, 0, 35)
    assert assign_first_row_ids([first, empty, listed(4, 0, 0, 40)], 40)[1] == 40


def test_files_take_ids_in_the_order_of_the_manifest(tmp_path):
    entries = [
        entry(ADDED, 10),
        entry(EXISTING, 20, 3),
        entry(DELETED, 40),
        entry(DELETED, 80, 50),
        entry(EXISTING, 160),
        entry(ADDED, 320),
    ]
    manifest = written(tmp_path, entries, 1000)
    assert ids(manifest) == [1000, 3, None, 50, 1010, 1170]
    # no filter shifts them
    assert ids(manifest, discard_deleted=True) == [1000, 3, 1010, 1170]


def test_a_manifest_without_an_id_has_files_without_ids(tmp_path):
    """It is older than the upgrade of the table, whatever its entries say."""
    manifest = written(tmp_path, [entry(ADDED, 1), entry(EXISTING, 2, 30)])
    assert ids(manifest) == [None, None]
    # one that no snapshot lists yet is not: a merge copies it
    assert ids(replace(manifest, sequence_number=UNASSIGNED_SEQ)) == [None, 30]


def test_a_manifest_of_version_2_is_numbered_in_an_upgraded_table(tmp_path):
    entries = [entry(EXISTING, 4), entry(ADDED, 2)]
    manifest = written(tmp_path, entries, 100, version=2)
    assert ids(manifest) == [100, 104]
    assert ids(replace(manifest, first_row_id=None)) == [None, None]


def test_delete_files_have_no_row_ids(tmp_path):
    deletes = entry(EXISTING, 4, 30, content=DataFileContent.POSITION_DELETES)
    manifest = written(tmp_path, [deletes], 100, content=ManifestContent.DELETES)
    (found,) = stored(manifest)
    assert found["data_file"]["first_row_id"] is None
    assert ids(manifest) == [None]


def test_ids_beyond_the_largest_long_are_refused_by_name(tmp_path):
    manifest = written(tmp_path, [entry(ADDED, 5), entry(ADDED, 5)], 2**63 - 6)
    with pytest.raises(CorruptFileError, match="not a readable manifest"):
        ids(manifest)


def stored(manifest):
    """Return the records of a manifest as fastavro reads them."""
    return list(read(manifest.manifest_path))


def read(location):
    return fastavro.reader(BytesIO(Path(location).read_bytes()))


@pytest.mark.parametrize("encoded", [False, True], ids=["objects", "columns"])
def test_copied_entries_state_the_ids_they_inherited(tmp_path, encoded):
    source = written(tmp_path, [entry(ADDED, 10, None, n) for n in range(3)], 1000)
    statuses = np.array([EXISTING.value, DELETED.value, ADDED.value], np.int32)
    target = ManifestWriter(3, SPEC, SCHEMA, 9)
    if encoded:
        columns = read_manifest_columns(IO, source, spec=SPEC, cache=None)
        encoder = EntryEncoder(3, SPEC, SCHEMA, 9)
        for record in encoder.encode(columns, np.arange(3), statuses):
            target.add_encoded(record)
    else:
        first, second, third = read_manifest(IO, source, spec=SPEC)
        target.existing(first)
        target.delete(second)
        target.add(third.data_file)
    copy = target.finish(IO, str(tmp_path / "copy.avro"))
    assert copy.first_row_id is None
    assert [r["data_file"]["first_row_id"] for r in stored(copy)] == [1000, 1010, None]
    assert ids(replace(copy, sequence_number=7, first_row_id=5000)) == [1000, 1010, 5000]


def test_fields_are_in_the_order_of_iceberg_java(tmp_path):
    manifest = written(tmp_path, [entry(ADDED, 1)], 1)
    reader = read(manifest.manifest_path)
    record = reader.writer_schema
    assert reader.metadata["format-version"] == "3"
    assert [f["field-id"] for f in record["fields"]] == [0, 1, 3, 4, 2]
    inner = record["fields"][-1]["type"]["fields"]
    assert [f["field-id"] for f in inner] == [
        134, 100, 101, 102, 103, 104, 108, 109, 110, 137, 125, 128, 131, 132, 135, 140, 142, 143,
        144, 145,
    ]  # fmt: skip


def test_a_deletion_vector_keeps_its_offset_and_length(tmp_path):
    vector = entry(
        ADDED,
        3,
        content=DataFileContent.POSITION_DELETES,
        file_format=FileFormat.PUFFIN,
        referenced_data_file="/t/data/7.parquet",
        content_offset=4,
        content_size_in_bytes=42,
    )
    manifest = written(tmp_path, [vector], content=ManifestContent.DELETES)
    (found,) = read_manifest(IO, manifest, spec=SPEC)
    assert found.data_file == vector.data_file
    assert found.data_file.is_deletion_vector
    assert found.data_file.identity == ("/t/data/0.parquet", 4, 42)


def test_the_list_states_first_row_ids(tmp_path):
    data = replace(listed(1, 5, 0, 40), manifest_path="/t/a")
    deletes = listed(2, 5, 0, content=ManifestContent.DELETES)
    location = str(tmp_path / "snap.avro")

    def write(*manifests):
        return write_manifest_list(
            IO,
            location,
            manifests,
            format_version=3,
            snapshot_id=9,
            parent_snapshot_id=None,
            sequence_number=4,
            first_row_id=40,
        )

    with pytest.raises(ValidationError, match="no first row id"):
        write(replace(data, first_row_id=None))
    write(data, deletes)
    reader = read(location)
    records = list(reader)
    assert {key: reader.metadata[key] for key in ("format-version", "first-row-id")} == {
        "format-version": "3",
        "first-row-id": "40",
    }
    assert list(records[0])[-2:] == ["key_metadata", "first_row_id"]
    assert [record["first_row_id"] for record in records] == [40, None]
    assert json.loads(reader.metadata["iceberg.schema"])["fields"][-1]["id"] == 520
    snapshot = Snapshot(9, None, 4, 1, location, first_row_id=40, added_rows=5)
    assert read_manifests(IO, snapshot) == (data, deletes)


def test_encoded_files_are_the_same_records_as_objects(tmp_path):
    file = entry(ADDED, 6).data_file
    form = DataFileForm(SPEC, SCHEMA)
    targets = []
    for version in (2, 3):
        one, other = (ManifestWriter(version, SPEC, SCHEMA, 9, codec="uncompressed") for _ in "ab")
        one.add(file)
        for encoded in form.entries([form.encode(file)], 9, version):
            other.add_encoded(encoded)
        targets.append([w.finish(IO, f"{tmp_path}/{version}{w is one}") for w in (one, other)])
    for one, other in targets:
        assert stored(one) == stored(other)


def test_a_cache_distinguishes_the_ids_that_lists_give_a_manifest(tmp_path):
    """Two branches of an upgraded table give the files of one manifest different ids."""
    manifest = written(tmp_path, [entry(ADDED, 2), entry(ADDED, 3)], version=2)
    cache = ManifestCache()
    for first in (None, 10, 70, 10, None):
        given = replace(manifest, first_row_id=first)
        columns = read_manifest_columns(IO, given, (), spec=SPEC, cache=cache)
        expected = [None, None] if first is None else [first, first + 2]
        assert columns.column("first_row_id").to_pylist() == expected


ENTRIES = st.lists(
    st.builds(
        entry,
        st.sampled_from([EXISTING, DELETED]),
        st.integers(0, 5),
        st.none() | st.integers(0, 50),
    )
    | st.builds(entry, st.just(ADDED), st.integers(0, 5)),
    min_size=1,
    max_size=6,
)
MANIFESTS = st.lists(
    st.tuples(ENTRIES, st.none() | st.integers(0, 10**6), st.sampled_from([2, 3])),
    min_size=1,
    max_size=4,
)


def naively(entries, first, version):
    """Return the ids that a reader gives the files, as the specification puts it."""
    found = []
    for one in entries:
        own = one.data_file.first_row_id if version == 3 else None
        if first is None:
            own = None
        elif own is None and one.is_live:
            own, first = first, first + one.data_file.record_count
        found.append(own)
    return found


@settings(max_examples=60, deadline=None)
@given(MANIFESTS)
def test_ids_are_those_of_a_naive_reader_however_manifests_are_decoded(tmp_path_factory, given):
    folder = tmp_path_factory.mktemp("manifests")
    made = [
        written(folder, entries, first, version=version, name=f"m{at}")
        for at, (entries, first, version) in enumerate(given)
    ]
    expected = [naively(*one) for one in given]
    assert [ids(manifest) for manifest in made] == expected
    batches = read_each_columns(IO, made, {3: SPEC}.get, cache=None)
    found = [columns.column("first_row_id").to_pylist() for columns in batches]
    assert found == expected
    batches = read_each_columns(IO, made, {3: SPEC}.get, cache=None)
    whole = chain(*(columns.column("first_row_id").to_pylist() for columns in joined(batches)))
    assert list(whole) == list(chain(*expected))
    data = [Path(manifest.manifest_path).read_bytes() for manifest in made]
    pairs = list(zip(data, made, strict=True))
    for at, columns in decode_together(pairs, ()).items():
        assert columns.column("first_row_id").to_pylist() == expected[at]
