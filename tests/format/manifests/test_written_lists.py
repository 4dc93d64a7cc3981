"""Manifest lists that are kept for the next commit: what is saved by it, and that nothing is stale."""

import re
import uuid
from collections import Counter
from tempfile import TemporaryDirectory

import pyiceberg.manifest
import pytest
from hypothesis import given, settings, strategies as st
from pyiceberg.io.pyarrow import PyArrowFileIO

from icecomb.catalog import open_table
from icecomb.catalog.hadoop.catalog import HadoopCatalog
from icecomb.catalog.table.table import Table
from icecomb.format.avro.container import ContainerWriter
from icecomb.format.errors import CommitFailedError
from icecomb.format.manifests.cache import WrittenLists
from icecomb.format.manifests.manifest import DataFile, ManifestFile
from icecomb.format.manifests.manifest_list import (
    ListBlock,
    ManifestList,
    read_manifests,
    write_manifest_list,
)
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Snapshot
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO

SCHEMA = Schema((NestedField(1, "id", LongType()),))


class CountingIO(FileIO):
    """A FileIO that remembers the kinds of files it is asked for, and what for."""

    def __init__(self, properties=None) -> None:
        super().__init__(properties)
        self.calls: list[tuple[str, str]] = []

    def _note(self, call, location) -> None:
        name = location.rpartition("/")[2]
        kinds = {"snap-": "list", "v": "metadata"}
        found = (kind for start, kind in kinds.items() if name.startswith(start))
        kind = "manifest" if re.search(r"-m\d+\.avro$", name) else next(found, "data")
        self.calls.append((call, "hint" if name == "version-hint.text" else kind))

    def read(self, location):
        self._note("read", location)
        return super().read(location)

    def open_to_copy(self, location):
        self._note("read", location)
        return super().open_to_copy(location)

    def open_input(self, location, size=None):
        self._note("open", location)
        return super().open_input(location, size)

    def create(self, location, data):
        self._note("create", location)
        super().create(location, data)

    def prepare(self, location, data, *, replace=False):
        self._note("create", location)
        return super().prepare(location, data, replace=replace)

    def create_stream(self, location):
        self._note("create", location)
        return super().create_stream(location)


def counting_table(tmp_path, name="t", **properties) -> Table:
    catalog = HadoopCatalog("counting", {"warehouse": str(tmp_path), **properties})
    catalog.io = CountingIO(catalog.properties)
    catalog.create_namespace_if_not_exists("db")
    made = catalog.table_exists(f"db.{name}")
    return catalog.load_table(f"db.{name}") if made else catalog.create_table(f"db.{name}", SCHEMA)


def append_to(table: Table, number: int) -> None:
    change = table.new_fast_append()
    change.append_data_file(
        DataFile(file_path=f"/data/{number}", record_count=1, file_size_in_bytes=number)
    )
    table.commit(change)


def calls_of_append(table: Table, number: int) -> Counter:
    table.io.calls.clear()
    append_to(table, number)
    return Counter(table.io.calls)


def paths(table: Table) -> list[str]:
    """The table's files, as another process sees them."""
    snapshot = open_table(table.location()).current_snapshot()
    return [
        entry.data_file.file_path
        for manifest in read_manifests(FileIO(), snapshot)
        for entry in read_manifest(FileIO(), manifest)
    ]


def expected_paths(*numbers) -> list[str]:
    return [f"/data/{number}" for number in numbers]


def test_the_thirtieth_append_touches_as_many_files_as_the_first(tmp_path):
    table = counting_table(tmp_path)
    counts = [calls_of_append(table, number) for number in range(30)]
    assert counts[0] == {
        # whether the base is still there
        ("read", "metadata"): 1,
        # whether others are further than files tell, before and after
        ("read", "hint"): 2,
        ("create", "manifest"): 1,
        ("create", "list"): 1,
        ("create", "metadata"): 1,
        ("create", "hint"): 1,
    }
    assert counts[1:] == counts[:1] * 29
    assert paths(table) == expected_paths(*range(29, -1, -1))


def test_a_record_of_a_manifest_list_is_encoded_once(tmp_path, monkeypatch):
    encoded = []
    encode = ContainerWriter.encode
    monkeypatch.setattr(ContainerWriter, "encode", lambda s, r: encoded.append(r) or encode(s, r))
    table = counting_table(tmp_path)
    for number in range(30):
        append_to(table, number)
    listed = [record["manifest_path"] for record in encoded if "manifest_path" in record]
    assert len(listed) == len(set(listed)) == 30


def test_the_list_on_disk_is_the_same_with_and_without_what_was_kept(tmp_path):
    kept = counting_table(tmp_path, "kept")
    forgetful = counting_table(tmp_path, "f", **{"io.manifest.cache-enabled": "false"})
    for table in (kept, forgetful):
        counts = [calls_of_append(table, number) for number in range(3)]
        lists_read = [count["read", "list"] for count in counts]
        assert lists_read == ([0, 0, 0] if table is kept else [0, 1, 1])
    one, other = (read_manifests(FileIO(), table.current_snapshot()) for table in (kept, forgetful))
    numbers = [(m.sequence_number, m.min_sequence_number, m.added_files_count) for m in one]
    assert numbers == [(3, 3, 1), (2, 2, 1), (1, 1, 1)]
    assert numbers == [
        (m.sequence_number, m.min_sequence_number, m.added_files_count) for m in other
    ]


def test_an_append_that_lost_a_race_builds_on_what_the_winner_committed(tmp_path):
    mine, same_process = counting_table(tmp_path), counting_table(tmp_path)
    append_to(mine, 0)
    same_process.refresh()
    stranger = open_table(mine.location())
    append_to(mine, 1)
    append_to(same_process, 2)
    append_to(stranger, 3)
    counts = calls_of_append(mine, 4)
    # what others committed is read: the table's new state, and the list of its snapshot
    assert counts["read", "list"] == 1
    append_to(mine, 5)
    append_to(stranger, 6)
    assert paths(mine) == expected_paths(6, 5, 4, 3, 2, 1, 0)


def test_a_branch_builds_on_its_own_head(tmp_path):
    table = counting_table(tmp_path)
    append_to(table, 0)
    with table.manage_snapshots() as manage:
        manage.create_branch(table.current_snapshot().snapshot_id, "b")
    for number, branch in enumerate(("b", "main", "b", "b", "main"), 1):
        change = table.new_fast_append(branch=branch)
        change.append_data_file(
            DataFile(file_path=f"/data/{number}", record_count=1, file_size_in_bytes=1)
        )
        table.commit(change)
    assert paths(table) == expected_paths(5, 2, 0)
    lists = {
        branch: [
            entry.data_file.file_path
            for manifest in read_manifests(FileIO(), table.snapshot_by_name(branch))
            for entry in read_manifest(FileIO(), manifest)
        ]
        for branch in ("main", "b")
    }
    assert lists == {"main": expected_paths(5, 2, 0), "b": expected_paths(4, 3, 1, 0)}


def test_a_table_made_anew_in_the_same_place_begins_empty(tmp_path):
    table = counting_table(tmp_path)
    append_to(table, 0)
    append_to(table, 1)
    table.catalog.drop_table("db.t", purge_requested=True)
    again = table.catalog.create_table("db.t", SCHEMA)
    append_to(again, 2)
    assert paths(again) == expected_paths(2)
    with pytest.raises(CommitFailedError):
        append_to(table, 3)
    assert paths(again) == expected_paths(2)


def manifest(number, path_length=0) -> ManifestFile:
    counts = ("added", "existing", "deleted")
    return ManifestFile(
        manifest_path=f"/t/metadata/{number}-{'x' * path_length}.avro",
        manifest_length=number,
        sequence_number=number,
        added_snapshot_id=number,
        **{f"{kind}_{what}_count": number for kind in counts for what in ("files", "rows")},
    )


def write_list(path, manifests, parent=None, version=2, codec="gzip") -> ManifestList:
    return write_manifest_list(
        FileIO(),
        str(path),
        manifests,
        format_version=version,
        snapshot_id=1,
        parent_snapshot_id=None,
        codec=codec,
        parent=parent,
    )


def test_a_block_of_a_list_is_compressed_until_it_is_full(tmp_path, monkeypatch):
    packed = []
    pack = ContainerWriter.pack
    monkeypatch.setattr(
        ContainerWriter, "pack", lambda s, r: packed.append(sum(map(len, r))) or pack(s, r)
    )
    manifests, written = [], None
    for number in range(1, 301):
        manifests.insert(0, manifest(number, 200))
        packed.clear()
        written = write_list(tmp_path / f"{number}.avro", manifests, written)
        assert sum(packed) < 16_400
    assert len(written.blocks) > 4
    path = str(tmp_path / "300.avro")
    assert read_manifests(FileIO(), Snapshot(1, None, 0, 1, path)) == tuple(manifests)
    theirs = pyiceberg.manifest.read_manifest_list(PyArrowFileIO().new_input(path))
    assert [m.manifest_path for m in theirs] == [m.manifest_path for m in manifests]


edits = st.tuples(
    st.sampled_from(("add", "replace", "remove")), st.integers(0, 30), st.integers(0, 9_000)
)


@settings(max_examples=30, deadline=None)
@given(st.lists(edits, max_size=25), st.sampled_from(("gzip", "none", "zstd", "snappy")))
def test_a_list_reads_as_it_was_meant_whatever_it_was_made_from(steps, codec):
    manifests, written = [], None
    with TemporaryDirectory() as folder:
        for number, (edit, at, length) in enumerate(steps, 1):
            if edit == "add":
                manifests.insert(0, manifest(number, length))
            elif at < len(manifests):
                manifests[at : at + 1] = [manifest(number, length)] if edit == "replace" else []
            path = f"{folder}/{number}.avro"
            kept = None if at == 30 else written
            written = write_list(path, manifests, kept, 1 + (at != 29), codec)
            read = read_manifests(FileIO(), Snapshot(1, None, 0, 1, path))
            assert [m.manifest_path for m in read] == [m.manifest_path for m in manifests]
            if at != 29:
                assert read == tuple(manifests) == tuple(written.manifests())


def test_only_the_last_lists_are_kept():
    lists = WrittenLists(limit=5)
    tables = [uuid.uuid4() for _ in range(4)]

    def snapshot(number):
        return Snapshot(number, None, number, number, f"/{number}.avro")

    def written(count):
        manifests = tuple(map(manifest, range(count)))
        return ManifestList(2, "gzip", (ListBlock(manifests, (b"",) * count, b"", False),))

    for number, table in enumerate(tables):
        lists.keep(table, snapshot(number), written(2))
    found = [lists.find(table, snapshot(n)) is not None for n, table in enumerate(tables)]
    assert found == [False, False, True, True]
    lists.keep(tables[3], snapshot(7), written(3))
    assert lists.find(tables[3], snapshot(3)) is None
    assert lists.find(tables[3], snapshot(7)) == written(3)
    assert lists.find(tables[2], snapshot(2)) == written(2)
    lists.keep(tables[2], snapshot(8), written(6))
    assert lists.find(tables[2], snapshot(8)) is lists.find(tables[2], snapshot(2)) is None
    assert lists.find(tables[3], snapshot(7)) == written(3)
    lists.keep(None, snapshot(1), written(1))
    assert lists.find(None, snapshot(1)) is None
