"""Decoded manifests in memory: found again, bounded, never wrong."""

import multiprocessing
from dataclasses import replace
from decimal import Decimal
from uuid import UUID, uuid4

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.manifests.cache import ManifestCache, manifest_cache, written_lists
from icecomb.format.manifests.manifest import (
    DataFile,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.manifest_list import ManifestList
from icecomb.format.manifests.reader import read_each_columns, read_manifest_columns
from icecomb.format.manifests.writer import assign_sequence_number
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.transform import parse_transform
from icecomb.format.spec.types import (
    BooleanType,
    DecimalType,
    FixedType,
    NestedField,
    StringType,
    TimestamptzType,
    UUIDType,
)
from icecomb.format.storage.file_io import FileIO
from tests.format.manifests.written_manifest import write_manifest

KINDS = {
    "u": (UUIDType(), UUID(int=5)),
    "n": (DecimalType(10, 3), Decimal("-1.250")),
    "s": (StringType(), "ä/b"),
    "b": (BooleanType(), True),
    "x": (FixedType(3), b"\x00\x01\x02"),
    "t": (TimestamptzType(), -5),
}
SCHEMA = Schema(
    tuple(NestedField(i, name, kind) for i, (name, (kind, _)) in enumerate(KINDS.items(), 1))
)
SPEC = PartitionSpec(
    0,
    tuple(
        PartitionField(i, 999 + i, parse_transform("identity"), name)
        for i, name in enumerate(KINDS, 1)
    ),
)
NO_STATISTICS = frozenset()
BOUNDS = frozenset(("lower_bounds", "upper_bounds"))


class CountingIO(FileIO):
    def __init__(self, properties=None):
        super().__init__(properties)
        self.reads = 0

    def read(self, location):
        self.reads += 1
        return super().read(location)


def file(number: int) -> DataFile:
    values = tuple(value for _, value in KINDS.values())
    return DataFile(
        file_path=f"f{number}",
        file_format=FileFormat.PARQUET,
        partition=values if number % 2 else (None,) * len(values),
        record_count=number,
        file_size_in_bytes=100 + number,
        value_counts={1: number},
        lower_bounds={3: b"a", 5: b"\x00"},
        upper_bounds={3: b"z"} if number % 3 else None,
        split_offsets=(4, 50),
        key_metadata=b"k" if number == 1 else None,
    )


def added(one) -> ManifestEntry:
    return ManifestEntry(status=ManifestEntryStatus.ADDED, data_file=one)


def existing(one) -> ManifestEntry:
    return ManifestEntry(
        status=ManifestEntryStatus.EXISTING,
        snapshot_id=7,
        sequence_number=3,
        file_sequence_number=3,
        data_file=one,
    )


def manifest(folder, name="m.avro", count=6, spec=SPEC) -> ManifestFile:
    files = map(file, range(count))
    if spec is not SPEC:
        entries = [added(replace(one, partition=())) for one in files]
    else:
        entries = [existing(one) for one in files]
    written = write_manifest(
        FileIO(),
        str(folder / name),
        entries,
        format_version=2,
        spec=spec,
        schema=SCHEMA,
        snapshot_id=9,
    )
    return assign_sequence_number(written, 9, 5)


def test_a_manifest_is_read_once(tmp_path):
    written, io, cache = manifest(tmp_path), CountingIO(), ManifestCache()
    found = read_manifest_columns(io, written, cache=cache)
    assert read_manifest_columns(io, written, cache=cache) is found
    assert io.reads == 1
    without = CountingIO({"io.manifest.cache-enabled": "false"})
    for _ in range(2):
        assert len(read_manifest_columns(without, written)) == 6
    assert without.reads == 2


def test_statistics_that_were_not_kept_are_read_and_kept(tmp_path):
    written, cache = manifest(tmp_path), ManifestCache()
    read_manifest_columns(FileIO(), written, (), cache=cache)
    assert cache.find(written, BOUNDS) is None
    read_manifest_columns(FileIO(), written, BOUNDS, cache=cache)
    assert cache.find(written, BOUNDS).statistics == BOUNDS
    assert cache.find(written, NO_STATISTICS).statistics == BOUNDS


def test_what_entries_inherit_is_part_of_what_is_kept(tmp_path):
    written, cache = manifest(tmp_path, spec=PartitionSpec(0, ())), ManifestCache()
    read_manifest_columns(FileIO(), written, cache=cache)
    assert cache.find(replace(written, sequence_number=6), NO_STATISTICS) is None
    assert cache.find(replace(written, manifest_length=1), NO_STATISTICS) is None
    assert cache.find(written, NO_STATISTICS).column("sequence_number").to_pylist() == [5] * 6


def test_another_tables_order_of_partition_fields_and_description_are_not_kept(tmp_path):
    ours = [manifest(tmp_path, f"{n}.avro") for n in range(3)]
    spec = PartitionSpec(0, SPEC.fields[::-1])
    theirs = [replace(one, min_sequence_number=1) for one in ours]
    files = read_manifest_columns(FileIO(), ours[0], spec=SPEC, cache=None).data_files()
    for read in (
        lambda io, some, spec: [read_manifest_columns(io, one, spec=spec) for one in some],
        lambda io, some, spec: [*read_each_columns(io, some, {0: spec}.get)],
    ):
        manifest_cache({}).clear()
        for other in read(FileIO(), theirs, spec):
            assert other.data_files()[1].partition == files[1].partition[::-1]
        for one, described in zip(read(FileIO(), ours, SPEC), ours, strict=True):
            assert [file.partition for file in one.data_files()] == [f.partition for f in files]
            assert one.manifest == described


def test_a_manifest_of_another_store_at_the_same_location_is_another(tmp_path):
    written, io = manifest(tmp_path), CountingIO({"s3.endpoint": "http://one"})
    for _ in range(2):
        read_manifest_columns(io, written)
    read_manifest_columns(other := CountingIO({"s3.endpoint": "http://two"}), written)
    assert (io.reads, other.reads) == (1, 1)


def test_the_cache_holds_no_more_than_its_limit_and_drops_the_least_recently_used(tmp_path):
    written = [manifest(tmp_path, f"{n}.avro") for n in range(4)]
    columns = [read_manifest_columns(FileIO(), m, cache=None) for m in written]
    size = columns[0].nbytes
    cache = ManifestCache(int(size * 3.5))
    for n in range(3):
        cache.keep(columns[n])
    assert cache.find(written[0], NO_STATISTICS) is not None
    cache.keep(columns[3])
    kept = [cache.find(m, NO_STATISTICS) is not None for m in written]
    assert kept == [True, False, True, True]
    nothing = ManifestCache(size - 1)
    nothing.keep(columns[0])
    assert nothing.find(written[0], NO_STATISTICS) is None


def test_a_forked_process_waits_for_no_thread_of_its_parent(tmp_path):
    io, written = FileIO(), manifest(tmp_path)
    read_manifest_columns(io, written)
    lists = written_lists(io)

    def read():
        read_manifest_columns(io, written)
        written_lists(io).keep(uuid4(), None, ManifestList(2, "null", ()))

    with manifest_cache({})._kept._lock, lists._kept._lock:  # as a thread of ours may hold them
        child = multiprocessing.get_context("fork").Process(target=read)
        child.start()
        child.join(20)
        hung = child.is_alive()
        child.kill()
        child.join()
    assert (hung, child.exitcode) == (False, 0)
    assert written_lists(io) is lists


def test_the_properties_of_the_file_io_choose_the_cache():
    name = "io.manifest.cache"
    assert manifest_cache({}) is manifest_cache({f"{name}.max-total-bytes": str(256 << 20)})
    assert manifest_cache({f"{name}-enabled": "false"}) is None
    small = manifest_cache({f"{name}.max-total-bytes": "1000"})
    assert small.limit == 1000
    assert manifest_cache({f"{name}.max-total-bytes": "1000"}) is small
    for bad in (
        {f"{name}-enabled": "perhaps"},
        {f"{name}.max-total-bytes": "1GB"},
        {f"{name}.max-total-bytes": "-1"},
    ):
        with pytest.raises(ConfigurationError, match=name):
            manifest_cache(bad)


def test_columns_without_statistics_hold_their_own_buffers_only(tmp_path):
    written = manifest(tmp_path, count=500)
    columns = read_manifest_columns(FileIO(), written, (), cache=None)
    assert columns.statistics == set()
    arrays = [columns.column(name) for name in columns.names] + [columns.partition(0)]
    held = sum(array.get_total_buffer_size() for array in arrays)
    assert held < 2 * columns.nbytes
