"""Decoded manifests in memory and in a folder: found again, bounded, never wrong."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from subprocess import PIPE
from uuid import UUID, uuid4

import pytest

from icecomb.format.errors import ConfigurationError
from icecomb.format.manifests.cache import ManifestCache, manifest_cache
from icecomb.format.manifests.manifest import (
    DataFile,
    FileFormat,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
)
from icecomb.format.manifests.manifest_list import ManifestList
from icecomb.format.manifests.reader import read_manifest_columns
from icecomb.format.manifests.store import ManifestStore
from icecomb.format.manifests.writer import assign_sequence_number, write_manifest
from icecomb.format.manifests.written_lists import written_lists
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
from tests.peers.child_process import ended

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


def stored(store):
    return sorted(path for path in store.folder.iterdir())


def test_a_stored_manifest_gives_back_the_same_entries(tmp_path):
    for spec in (SPEC, PartitionSpec(0, ())):
        written = manifest(tmp_path, f"{len(spec.fields)}.avro", spec=spec)
        columns = read_manifest_columns(FileIO(), written, cache=None)
        store = ManifestStore(tmp_path / "store", 1 << 30)
        assert store.find(written, NO_STATISTICS) is None
        store.keep(columns)
        found = ManifestStore(tmp_path / "store", 1 << 30).find(written, columns.statistics)
        assert found.entries() == columns.entries()
        assert found.entries([4, 1]) == columns.entries([4, 1])
        assert found.partition_columns == columns.partition_columns
        assert found.statistics == columns.statistics
        assert found.statistic("lower_bounds", 3).to_pylist() == [b"a"] * 6


def test_a_new_process_does_not_read_the_manifest_again(tmp_path):
    written = manifest(tmp_path)
    first, later = CountingIO(), CountingIO()
    store = tmp_path / "store"
    expected = read_manifest_columns(
        first, written, cache=ManifestCache(store=ManifestStore(store, 1 << 30))
    )
    cache = ManifestCache(store=ManifestStore(store, 1 << 30))
    found = read_manifest_columns(later, written, cache=cache)
    assert found.entries() == expected.entries()
    assert (first.reads, later.reads) == (1, 0)
    assert read_manifest_columns(later, written, cache=cache) is found


def test_statistics_that_were_not_stored_are_read_and_stored(tmp_path):
    written, store = manifest(tmp_path), ManifestStore(tmp_path / "store", 1 << 30)
    store.keep(read_manifest_columns(FileIO(), written, (), cache=None))
    assert store.find(written, BOUNDS) is None
    store.keep(read_manifest_columns(FileIO(), written, BOUNDS, cache=None))
    assert store.find(written, BOUNDS).statistics == BOUNDS
    assert store.find(written, NO_STATISTICS).statistics == BOUNDS
    assert len(stored(store)) == 1


def test_what_entries_inherit_is_part_of_what_is_stored(tmp_path):
    written = manifest(tmp_path, spec=PartitionSpec(0, ()))
    store = ManifestStore(tmp_path / "store", 1 << 30)
    store.keep(read_manifest_columns(FileIO(), written, cache=None))
    assert store.find(replace(written, sequence_number=6), NO_STATISTICS) is None
    assert store.find(replace(written, manifest_length=1), NO_STATISTICS) is None
    assert store.find(written, NO_STATISTICS).column("sequence_number").to_pylist() == [5] * 6


def test_a_damaged_file_is_not_used_but_made_anew(tmp_path, caplog):
    written, cache = (
        manifest(tmp_path),
        ManifestCache(store=ManifestStore(tmp_path / "store", 1 << 30)),
    )
    columns = read_manifest_columns(FileIO(), written, cache=cache)
    (path,) = stored(cache.store)
    whole = path.read_bytes()
    changed = [
        whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, len(whole), 97)
    ]
    for damaged in (b"", b"abc", whole[:-1], whole[: len(whole) // 2], whole + b"x", *changed):
        path.write_bytes(damaged)
        assert cache.store.find(written, NO_STATISTICS) is None
    assert "damaged" in caplog.text
    cache.clear()
    io = CountingIO()
    assert read_manifest_columns(io, written, cache=cache).entries() == columns.entries()
    assert io.reads == 1
    assert path.read_bytes() == whole


def test_the_file_of_another_manifest_is_not_taken_for_this_one(tmp_path):
    one, other = manifest(tmp_path, "a.avro"), manifest(tmp_path, "b.avro", count=2)
    store = ManifestStore(tmp_path / "store", 1 << 30)
    store.keep(read_manifest_columns(FileIO(), one, cache=None))
    (path,) = stored(store)
    store.keep(read_manifest_columns(FileIO(), other, cache=None))
    (second,) = set(stored(store)) - {path}
    second.replace(path)
    assert store.find(one, NO_STATISTICS) is None


def test_the_folder_holds_no_more_than_its_limit_and_drops_the_least_recently_used(tmp_path):
    written = [manifest(tmp_path, f"{n}.avro") for n in range(4)]
    columns = [read_manifest_columns(FileIO(), m, cache=None) for m in written]
    big = ManifestStore(tmp_path / "one", 1 << 30)
    big.keep(columns[0])
    (path,) = stored(big)
    size = path.stat().st_size
    store = ManifestStore(tmp_path / "store", int(size * 3.5))
    for n in range(3):
        store.keep(columns[n])
        (new,) = [p for p in stored(store) if p.stat().st_mtime_ns > 10**18]
        os.utime(new, ns=(n, n))
    assert store.find(written[0], NO_STATISTICS) is not None
    store.keep(columns[3])
    kept = [store.find(m, NO_STATISTICS) is not None for m in written]
    assert kept == [True, False, True, True]
    assert sum(p.stat().st_size for p in stored(store)) <= store.limit
    nothing = ManifestStore(tmp_path / "nothing", size - 1)
    nothing.keep(columns[0])
    assert nothing.find(written[0], NO_STATISTICS) is None


def test_a_folder_that_takes_no_file_costs_nothing_but_a_warning(tmp_path, caplog):
    written = manifest(tmp_path)
    (tmp_path / "taken").write_text("a file, no folder")
    cache = ManifestCache(store=ManifestStore(tmp_path / "taken", 1 << 30))
    assert len(read_manifest_columns(FileIO(), written, cache=cache)) == 6
    assert "taken" in caplog.text


def test_a_killed_writer_leaves_nothing_that_is_found(tmp_path):
    written, store = manifest(tmp_path), ManifestStore(tmp_path / "store", 1 << 30)
    columns = read_manifest_columns(FileIO(), written, cache=None)
    store.keep(columns)
    (path,) = stored(store)
    half = path.with_suffix(".tmp")
    whole = path.read_bytes()
    half.write_bytes(whole[:-1])
    os.utime(half, ns=(0, 0))
    path.unlink()
    assert store.find(written, NO_STATISTICS) is None
    crowded = ManifestStore(store.folder, len(whole) + 10)
    crowded.keep(columns)
    assert stored(crowded) == [path]


READ_OFTEN = """
import pickle, sys
from icecomb.format.storage.file_io import FileIO
from icecomb.format.manifests.cache import ManifestCache
from icecomb.format.manifests.reader import read_manifest_columns
from icecomb.format.manifests.store import ManifestStore
manifests = pickle.loads(bytes.fromhex(sys.stdin.read()))
rows = 0
for _ in range(5):
    cache = ManifestCache(store=ManifestStore(sys.argv[1], int(sys.argv[2])))
    rows += sum(len(read_manifest_columns(FileIO(), m, cache=cache).entries()) for m in manifests)
print(rows)
"""


def test_a_forked_process_waits_for_no_thread_of_its_parent(tmp_path):
    io, written = FileIO(), manifest(tmp_path)
    read_manifest_columns(io, written)
    lists = written_lists(io)

    def read():
        read_manifest_columns(io, written)
        written_lists(io).keep(uuid4(), None, ManifestList(2, "null", ()))

    with manifest_cache({})._lock, lists._lock:  # as a thread of ours may hold them
        child = multiprocessing.get_context("fork").Process(target=read)
        child.start()
        child.join(20)
        hung = child.is_alive()
        child.kill()
        child.join()
    assert (hung, child.exitcode) == (False, 0)
    assert written_lists(io) is lists


@pytest.mark.gate("three processes read a folder 2,000 times")
def test_several_processes_share_a_folder(tmp_path):
    manifests = [manifest(tmp_path, f"{n}.avro", count=50) for n in range(8)]
    one = read_manifest_columns(FileIO(), manifests[0], cache=None).nbytes
    command = [sys.executable, "-c", READ_OFTEN, str(tmp_path / "store"), str(5 * one)]
    running = [
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True, cwd="/")
        for _ in range(3)
    ]
    with ended(*running):
        for process in running:
            process.stdin.write(pickle.dumps(manifests).hex())
            process.stdin.close()
        for process in running:
            assert (process.stdout.read(), process.stderr.read()) == ("2000\n", "")


def test_the_properties_of_the_file_io_choose_the_cache(tmp_path):
    name = "io.manifest.cache"
    assert manifest_cache({}) is manifest_cache({f"{name}.max-total-bytes": str(256 << 20)})
    assert manifest_cache({f"{name}-enabled": "false"}) is None
    small = manifest_cache({f"{name}.max-total-bytes": "1000"})
    assert (small.limit, small.store) == (1000, None)
    assert manifest_cache({f"{name}.max-total-bytes": "1000"}) is small
    folder = {f"{name}.folder": str(tmp_path / "store"), f"{name}.folder-max-total-bytes": "9"}
    assert manifest_cache(folder).store.limit == 9
    for bad in (
        {f"{name}-enabled": "perhaps"},
        {f"{name}.max-total-bytes": "1GB"},
        {f"{name}.max-total-bytes": "-1"},
    ):
        with pytest.raises(ConfigurationError, match=name):
            manifest_cache(bad)


def test_a_configured_folder_is_used_by_reading(tmp_path):
    written = manifest(tmp_path)
    properties = {"io.manifest.cache.folder": str(tmp_path / "store")}
    io = CountingIO(properties)
    first = read_manifest_columns(io, written)
    assert read_manifest_columns(io, written) is first
    assert io.reads == 1
    assert len(list((tmp_path / "store").iterdir())) == 1
    assert (
        len(read_manifest_columns(CountingIO({"io.manifest.cache-enabled": "false"}), written)) == 6
    )


def test_columns_without_statistics_hold_their_own_buffers_only(tmp_path):
    written = manifest(tmp_path, count=500)
    columns = read_manifest_columns(FileIO(), written, (), cache=None)
    assert columns.statistics == set()
    arrays = [columns.column(name) for name in columns.names] + [columns.partition(0)]
    held = sum(array.get_total_buffer_size() for array in arrays)
    assert held < 2 * columns.nbytes


@pytest.mark.parametrize("mode", [0o777, 0o770])
def test_a_folder_that_others_can_write_to_is_not_believed(tmp_path, caplog, mode):
    written = manifest(tmp_path)
    columns = read_manifest_columns(FileIO(), written, cache=None)
    folder = tmp_path / "store"
    ManifestStore(folder, 1 << 30).keep(columns)
    assert ManifestStore(folder, 1 << 30).find(written, columns.statistics) is not None
    folder.chmod(mode)
    other = ManifestStore(folder, 1 << 30)
    assert other.find(written, columns.statistics) is None
    (file,) = folder.iterdir()
    file.unlink()
    other.keep(columns)
    assert list(folder.iterdir()) == []
    assert "other users may write to it" in caplog.text
