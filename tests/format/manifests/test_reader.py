"""Many manifests in one go: what is told of each is what it tells alone."""

from __future__ import annotations

import multiprocessing
import random
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from icecomb.format.errors import CorruptFileError, NoSuchFileError, ValidationError
from icecomb.format.manifests.cache import ManifestCache
from icecomb.format.manifests.columns import ManifestColumns
from icecomb.format.manifests.entry_encoder import EntryEncoder
from icecomb.format.manifests.manifest import (
    DataFile,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.reader import (
    BATCH_BYTES,
    batches,
    decoding_threads,
    fetch_batches,
    manifests_at_once,
    read_batch,
    read_each_columns,
    read_manifest,
    read_manifest_columns,
)
from icecomb.format.manifests.schema import STATISTICS
from icecomb.format.manifests.writer import assign_sequence_number
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import FixedType, LongType, NestedField
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.test_columns import SCHEMA as WIDE_SCHEMA, SPEC as WIDE, entry, files
from tests.format.manifests.written_manifest import state_fewer, write_manifest

IO = FileIO()
PLAIN = PartitionSpec(0, ())
SPECS = {0: PLAIN, 1: WIDE}
ADDED = ManifestEntryStatus.ADDED

added_entry = st.builds(ManifestEntry, status=st.just(ADDED), data_file=files)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("many")


def fetched(entry: ManifestEntry, snapshot_id: int, number: int) -> ManifestEntry:
    """What an entry is once it has inherited from its manifest."""
    if entry.status is not ADDED:
        return entry
    return replace(
        entry, snapshot_id=snapshot_id, sequence_number=number, file_sequence_number=number
    )


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(entry | added_entry, max_size=4),
            st.sampled_from((0, 1)),
            st.integers(2**33, 2**40),
            st.integers(2**41, 2**42),
        ),
        max_size=7,
    ),
)
def test_many_manifests_tell_what_was_written_to_each(folder, drawn):
    manifests, expected = [], []
    for entries, spec_id, snapshot_id, number in drawn:
        rows = [
            replace(
                e,
                data_file=replace(
                    e.data_file,
                    spec_id=spec_id,
                    partition=e.data_file.partition if spec_id else (),
                ),
            )
            for e in entries
        ]
        path = folder / f"{uuid4()}.avro"  # manifests never change: what is kept goes by names
        manifest = write_manifest(
            IO,
            str(path),
            rows,
            format_version=2,
            spec=SPECS[spec_id],
            schema=WIDE_SCHEMA,
            snapshot_id=snapshot_id,
        )
        manifests.append(assign_sequence_number(manifest, snapshot_id, number))
        expected.append([fetched(e, snapshot_id, number) for e in rows])
    cache = ManifestCache()
    for _ in range(2):  # decoded, and kept
        found = list(read_each_columns(IO, manifests, SPECS.__getitem__, None, cache=cache))
        assert [columns.manifest for columns in found] == manifests
        for columns, entries, (_, spec_id, *_) in zip(found, expected, drawn, strict=True):
            assert len(columns) == len(entries)
            assert columns.entries() == entries
            assert columns.entries(range(1, len(entries))) == entries[1:]
            assert columns.live.to_pylist() == [e.is_live for e in entries]
            for name in STATISTICS:
                for column_id in (1, 5):
                    of_files = [(getattr(e.data_file, name) or {}).get(column_id) for e in entries]
                    assert columns.statistic(name, column_id).to_pylist() == of_files
            for position in range(len(SPECS[spec_id].fields)):
                assert len(columns.partition(position)) == len(entries)


def written(folder: Path, number: int, files: int = 2, *, snapshot_id: int = 9) -> ManifestFile:
    entries = [
        ManifestEntry(
            status=ADDED,
            data_file=DataFile(
                file_path=f"/t/{number}/{i}",
                record_count=number,
                file_size_in_bytes=1,
                lower_bounds={1: bytes([number])},
                spec_id=0,
            ),
        )
        for i in range(files)
    ]
    manifest = write_manifest(
        IO,
        str(folder / f"{number:03}.avro"),
        entries,
        format_version=2,
        spec=PLAIN,
        schema=WIDE_SCHEMA,
        snapshot_id=snapshot_id,
    )
    return assign_sequence_number(manifest, snapshot_id, number + 1)


def paths(manifest: ManifestFile) -> list[str]:
    number = int(Path(manifest.manifest_path).stem)
    return [f"/t/{number}/{i}" for i in range(2)]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def change(path: Path) -> None:
    """Records of another length, between markers that are right."""
    data = path.read_bytes()
    marker = data[-16:]
    at = data.index(marker) + 16
    path.write_bytes(data[:at] + b"\x04\x06abc" + marker + bytes(len(data)))


def state_more(path: Path) -> None:
    data = path.read_bytes()
    at = data.index(data[-16:]) + 16
    path.write_bytes(data[:at] + b"\x06" + data[at + 1 :])


def empty(path: Path) -> None:
    path.write_bytes(b"")


HARMS = [cut, change, state_fewer, state_more, empty, Path.unlink]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("place", [0, 1, 2, 5, 9])
def test_a_damaged_manifest_among_many_is_named_behind_those_before_it(tmp_path, harm, place):
    manifests = [written(tmp_path, number) for number in range(10)]
    harm(Path(manifests[place].manifest_path))
    found = read_each_columns(IO, manifests, SPECS.__getitem__, cache=None)
    for manifest in manifests[:place]:
        assert next(found).column("file_path").to_pylist() == paths(manifest)
    with pytest.raises((CorruptFileError, NoSuchFileError), match=f"{place:03}.avro"):
        next(found)


def test_a_forked_process_reads_many_without_the_threads_of_its_parent(tmp_path):
    manifests = [written(tmp_path, number) for number in range(10)]

    def read():
        found = read_each_columns(IO, manifests, SPECS.__getitem__, None, cache=None)
        assert [c.column("file_path").to_pylist() for c in found] == list(map(paths, manifests))

    read()  # the threads that join blocks are there now
    child = multiprocessing.get_context("fork").Process(target=read)
    child.start()
    child.join(20)
    hung = child.is_alive()
    child.kill()
    child.join()
    assert (hung, child.exitcode) == (False, 0)


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("at_once", [1, 4])
def test_what_is_damaged_or_lost_among_many_is_told_and_passed_over(tmp_path, harm, at_once):
    io = FileIO()
    io.at_once = lambda _: at_once  # type: ignore[method-assign]
    manifests = [written(tmp_path, number) for number in range(12)]
    harmed = [manifests[place] for place in (0, 4, 5, 11)]
    for manifest in harmed:
        harm(Path(manifest.manifest_path))
    told = []
    found = read_each_columns(
        io,
        manifests,
        SPECS.__getitem__,
        cache=None,
        unreadable=lambda manifest, error: told.append((manifest, error)),
    )
    whole = [manifest for manifest in manifests if manifest not in harmed]
    read = [(c.manifest, c.column("file_path").to_pylist()) for c in found]
    assert read == [(manifest, paths(manifest)) for manifest in whole]
    assert [manifest for manifest, _ in told] == harmed
    for manifest, error in told:
        assert Path(manifest.manifest_path).name in error.message


def test_a_spec_that_the_table_has_not_is_told_behind_the_others(tmp_path):
    manifests = [written(tmp_path, number) for number in range(6)]
    manifests[4] = replace(manifests[4], partition_spec_id=7)

    def spec_by_id(number: int) -> PartitionSpec:
        if number == 7:
            raise ValidationError("no spec 7", hint="x")
        return PLAIN

    found = read_each_columns(IO, manifests, spec_by_id, cache=None)
    for manifest in manifests[:4]:
        assert next(found).manifest == manifest
    with pytest.raises(ValidationError, match="no spec 7"):
        next(found)


def test_values_with_a_length_in_front_are_read_among_others(tmp_path):
    # Iceberg Java 1.11 declares `fixed` and writes bytes: one schema, two layouts
    schema = Schema((NestedField(1, "f", FixedType(3)), NestedField(2, "g", LongType())))
    spec = PartitionSpec(
        0,
        tuple(
            PartitionField(i, 999 + i, parse_transform("identity"), name)
            for i, name in enumerate("fg", 1)
        ),
    )
    manifests, expected = [], []
    for number in range(6):
        files = [
            DataFile(
                file_path=f"/t/{number}/{i}",
                partition=(b"abc" if i else None, i),
                record_count=1,
                file_size_in_bytes=1,
                spec_id=0,
            )
            for i in range(3)
        ]
        manifest = write_manifest(
            IO,
            str(tmp_path / f"{number}.avro"),
            [ManifestEntry(status=ADDED, data_file=file) for file in files],
            format_version=2,
            spec=spec,
            schema=schema,
            snapshot_id=9,
        )
        path = Path(manifest.manifest_path)
        declared = b'{"type":"fixed","name":"fixed_3","size":3}'
        data = path.read_bytes().replace(
            b'"name":"f","type":["null","bytes"]', b'"name":"f","type":["null",%b]' % declared
        )
        start = data.index(b"avro.schema") + len(b"avro.schema")
        size = (len(data[start:].split(b"\x14avro.codec")[0]) - 2) << 1
        path.write_bytes(data[:start] + bytes([size & 0x7F | 0x80, size >> 7]) + data[start + 2 :])
        manifests.append(assign_sequence_number(manifest, 9, 1))
        expected.append(files)
    found = read_each_columns(IO, manifests, lambda _: spec, cache=None)
    assert [columns.data_files() for columns in found] == expected


def test_statistics_may_differ_from_manifest_to_manifest(tmp_path):
    manifests = [written(tmp_path, number) for number in range(9)]
    wanted = {m.manifest_path: STATISTICS[: i % 3] for i, m in enumerate(manifests)}

    def columns_of(manifest: ManifestFile) -> tuple[str, ...]:
        return tuple(wanted[manifest.manifest_path])

    for batch in fetch_batches(IO, manifests, columns_of, cache=None):
        for columns in read_batch(IO, batch, SPECS.__getitem__, columns_of, cache=None):
            assert columns.statistics == set(columns_of(columns.manifest))
            assert columns.column("file_path").to_pylist() == paths(columns.manifest)


def test_entries_of_one_among_many_are_written_as_they_were_read(tmp_path):
    manifests = [written(tmp_path, number, 4) for number in range(8)]
    found = list(read_each_columns(IO, manifests, SPECS.__getitem__, None, cache=None))
    encoder = EntryEncoder(2, PLAIN, WIDE_SCHEMA, 77)
    rows, statuses = np.array([1, 3]), np.array([0, 2], np.int32)
    alone = [
        next(read_each_columns(IO, [manifest], SPECS.__getitem__, None, cache=None))
        for manifest in manifests
    ]
    for many, one in zip(found, alone, strict=True):
        assert encoder.encode(many, rows, statuses) == encoder.encode(one, rows, statuses)


def test_threads_decode_only_where_most_bytes_are_in_large_manifests(tmp_path):
    small = [written(tmp_path, number) for number in range(5)]
    large = replace(small[0], manifest_length=BATCH_BYTES + 1)
    many = [replace(small[1], manifest_length=BATCH_BYTES // 2)] * 4
    assert decoding_threads(small, 4) == 1
    assert decoding_threads([large, *many], 4) == 1
    assert decoding_threads([large, *many[:1]], 4) == 4
    assert decoding_threads([large], 4) == 1


@pytest.mark.parametrize(
    ("mebibytes", "at_once"),
    [([], 1), ([1], 1), ([1] * 3, 3), ([1] * 100, 8), ([9] * 100, 7), ([33] * 9, 1), ([65, 1], 1),
     ([1] * 40 + [40] + [1] * 40, 8), ([1, 40, 40, 1], 1)],
)  # fmt: skip
def test_of_large_manifests_fewer_are_held_at_a_time(tmp_path, mebibytes, at_once):
    io = FileIO()
    io.at_once = lambda _: 8  # type: ignore[method-assign]
    one = written(tmp_path, 0)
    manifests = [replace(one, manifest_length=size << 20) for size in mebibytes]
    assert manifests_at_once(io, manifests) == at_once


def test_a_manifest_that_is_asked_for_again_keeps_no_other_in_memory(tmp_path):
    def held(columns: ManifestColumns) -> int:
        arrays = [columns.column(name) for name in columns.names]
        return sum(b.size for array in arrays for b in array.buffers() if b is not None)

    manifests = [written(tmp_path, number) for number in range(60)]
    cache = ManifestCache()
    *_, shared = read_each_columns(IO, manifests, SPECS.__getitem__, None, cache=cache)
    alone = read_manifest_columns(IO, manifests[-1], spec=PLAIN, cache=None)
    assert held(shared) > 8 * held(alone)
    again = read_manifest_columns(IO, manifests[-1], spec=PLAIN, cache=cache)
    assert held(again) <= 2 * held(alone)
    assert again.entries() == alone.entries() == shared.entries()
    assert read_manifest_columns(IO, manifests[-1], spec=PLAIN, cache=cache) is again


def test_who_needs_the_first_manifest_reads_no_other(tmp_path):
    read: list[str] = []
    io = FileIO()
    inner = io.read
    io.read = lambda location: (read.append(location), inner(location))[1]  # type: ignore[method-assign]
    manifests = [written(tmp_path, number) for number in range(40)]
    found = read_each_columns(io, manifests, SPECS.__getitem__, cache=None)
    taken = 0
    for wanted in (1, 2, 4, 10):
        while taken < wanted:
            next(found)
            taken += 1
        assert taken <= len(read) < 2 * taken + 1
    assert len(read) == len(set(read))


@given(st.lists(st.integers(0, 2 * BATCH_BYTES), max_size=300))
def test_batches_are_all_files_in_their_order_within_their_bounds(lengths):
    items = list(enumerate(lengths))
    found = list(batches(items, lambda item: item[1]))
    assert [item for batch in found for item in batch] == items
    for batch in found:
        assert 1 <= len(batch) <= 64
        assert len(batch) == 1 or sum(length for _, length in batch) <= BATCH_BYTES


def test_bytes_that_changed_in_one_of_many_are_told_or_read_as_alone(tmp_path, first_seed):
    draw = random.Random(first_seed)
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        manifests = [written(folder, number) for number in range(7)]
        victim = Path(draw.choice(manifests[1:]).manifest_path)
        data = bytearray(victim.read_bytes())
        for _ in range(draw.randint(1, 4)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        victim.write_bytes(data)
        told = []
        found = {
            c.manifest.manifest_path: c.entries()
            for c in read_each_columns(
                IO,
                manifests,
                SPECS.__getitem__,
                None,
                cache=None,
                unreadable=lambda manifest, _, told=told: told.append(manifest),
            )
        }
        for manifest in manifests:
            if manifest in told:
                assert manifest.manifest_path == str(victim)
                with pytest.raises(CorruptFileError):
                    read_manifest(IO, manifest, spec=PLAIN)
            else:
                alone = read_manifest(IO, manifest, spec=PLAIN)
                assert found[manifest.manifest_path] == alone
