"""Row ids that commits assign: on every attempt, never twice, the same for a file's whole life."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import fastavro
import pytest

from icecomb.format.errors import IcecombError, UnsupportedError, ValidationError
from icecomb.format.manifests.encoded_file import DataFileForm
from icecomb.format.manifests.manifest import DataFile, ManifestEntryStatus
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest
from icecomb.format.operation.append import FastAppend, MergeAppend
from icecomb.format.operation.cherry_pick import CherryPick
from icecomb.format.operation.overwrite import DeleteFiles, OverwriteFiles, ReplacePartitions
from icecomb.format.operation.rewrite_manifests import RewriteManifests
from icecomb.format.spec.change.update import (
    SetSnapshotRefUpdate,
    UpgradeFormatVersionUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import UnknownTransform, parse_transform
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO
from tests.format.commit import commit

IO = FileIO()
SCHEMA = Schema((NestedField(1, "id", LongType()), NestedField(2, "p", LongType())))
SPEC = PartitionSpec(0, (PartitionField(2, 1000, parse_transform("identity"), "p"),))
EXISTING = ManifestEntryStatus.EXISTING


def new_table(folder, version=3, **properties):
    properties = {"format-version": str(version), **properties}
    return new_table_metadata(SCHEMA, SPEC, UNSORTED_SORT_ORDER, str(folder / "t"), properties)


def file(name, rows=10, partition=0) -> DataFile:
    return DataFile(
        file_path=f"/t/data/{name}",
        partition=(partition,),
        record_count=rows,
        file_size_in_bytes=100,
    )


def fast(*files, **options):
    operation = FastAppend(IO, **options)
    for one in files:
        operation.append_data_file(one)
    return operation


def merging(*files, **options):
    operation = MergeAppend(IO, **options)
    for one in files:
        operation.append_data_file(one)
    return operation


def upgraded(base):
    return update_table_metadata(base, (UpgradeFormatVersionUpdate(3),))


def file_ids(metadata, snapshot=None):
    """Return the first row ids of a snapshot's files by name."""
    snapshot = snapshot or metadata.current_snapshot()
    return {
        entry.data_file.file_path.rpartition("/")[2]: entry.data_file.first_row_id
        for manifest in read_manifests(IO, snapshot)
        for entry in read_manifest(IO, manifest, discard_deleted=True)
    }


def list_ids(metadata):
    return [m.first_row_id for m in read_manifests(IO, metadata.current_snapshot())]


def test_appends_number_their_rows_one_after_the_other(tmp_path):
    first = commit(new_table(tmp_path), fast(file("a", 3), file("b", 4)))
    second = commit(first, fast(file("c", 2)))
    assert file_ids(second) == {"a": 0, "b": 3, "c": 7}
    assert second.next_row_id == 9
    assert [(s.first_row_id, s.added_rows) for s in second.snapshots] == [(0, 7), (7, 2)]


def test_merging_appends_use_up_ids_as_in_iceberg_java(tmp_path):
    """Five appends of 2 rows end at 30 in Iceberg Java 1.12."""
    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "2"})
    for number in range(5):
        table = commit(table, merging(file(f"f{number}", 2)))
    assert table.next_row_id == 30
    found = file_ids(table)
    assert len(set(found.values())) == 5


def test_a_file_keeps_its_ids_when_its_manifest_is_rewritten(tmp_path):
    table = commit(new_table(tmp_path), fast(file("a", 3), file("b", 4)))
    table = commit(table, fast(file("c", 2)))
    before = file_ids(table)
    rewritten = commit(table, RewriteManifests(IO))
    assert file_ids(rewritten) == before
    # the new manifest takes ids, although none of its files needs one
    assert (rewritten.next_row_id, list_ids(rewritten)) == (18, [9])
    smaller = commit(rewritten, DeleteFiles(IO).delete_data_file("/t/data/a"))
    assert file_ids(smaller) == {"b": 3, "c": 7}


def test_a_retry_numbers_its_rows_again_on_what_others_committed(tmp_path):
    table = commit(new_table(tmp_path), fast(file("a", 3)))
    operation = fast(file("b", 4))
    operation.apply(table)
    table = commit(table, fast(file("c", 5)))
    table = commit(table, operation)
    assert file_ids(table) == {"a": 0, "c": 3, "b": 8}
    assert table.current_snapshot().first_row_id == 8


@pytest.mark.parametrize(
    "operation",
    [
        lambda: DeleteFiles(IO).delete_data_file("/t/data/a"),
        lambda: merging(file("d", 1)),
        lambda: RewriteManifests(IO),
    ],
    ids=["filter", "merge", "rewrite"],
)
def test_a_retry_sees_the_ids_that_others_gave_to_older_files(tmp_path, operation):
    """The first commit after the upgrade numbers them; manifests copied before state none."""
    table = new_table(tmp_path, 2, **{"commit.manifest.min-count-to-merge": "1"})
    table = commit(table, fast(file("a", 3), file("b", 4)))
    table = upgraded(commit(table, fast(file("x", 1))))
    late = operation()
    late.apply(table)
    table = commit(table, fast(file("c", 5)))
    before = file_ids(table)
    table = commit(table, late)
    after = file_ids(table)
    assert {name: before[name] for name in before if name in after} == {
        name: after[name] for name in before if name in after
    }


def test_a_transaction_numbers_each_of_its_snapshots(tmp_path):
    """Also when it is applied again on what others committed meanwhile."""
    base = commit(new_table(tmp_path), fast(file("a", 3)))
    others = commit(base, fast(file("x", 100)))
    steps = (
        merging(file("b", 4)),
        DeleteFiles(IO).delete_data_file("/t/data/a"),
        RewriteManifests(IO),
    )
    for start in (base, others):
        table = start
        for step in steps:
            table = commit(table, step)
    assert file_ids(table) == {"x": 3, "b": 103}


@pytest.mark.parametrize("between", [1, 2])
def test_the_first_commit_after_an_upgrade_numbers_all_files(tmp_path, between):
    table = commit(new_table(tmp_path, 1), fast(file("a", 3)))
    table = update_table_metadata(table, (UpgradeFormatVersionUpdate(between),))
    table = commit(table, fast(file("b", 4)))
    table = upgraded(table)
    assert file_ids(table) == {"a": None, "b": None}
    old = table.current_snapshot()
    table = commit(table, fast(file("c", 5)))
    assert file_ids(table) == {"c": 0, "b": 5, "a": 9}
    assert table.next_row_id == 12
    assert file_ids(table, old) == {"a": None, "b": None}


def test_a_file_may_have_other_ids_on_another_branch_of_an_upgraded_table(tmp_path):
    table = upgraded(commit(new_table(tmp_path, 2), fast(file("a", 3))))
    table = update_table_metadata(
        table, (SetSnapshotRefUpdate("dev", "branch", table.current_snapshot_id),)
    )
    table = commit(table, fast(file("b", 4)))
    table = commit(table, fast(file("c", 5), branch="dev"))
    assert file_ids(table) == {"b": 0, "a": 4}
    assert file_ids(table, table.snapshot_by_name("dev")) == {"c": 7, "a": 12}
    assert table.next_row_id == 15


def test_a_staged_snapshot_takes_ids_and_its_files_get_others_when_it_is_picked(tmp_path):
    table = commit(new_table(tmp_path), fast(file("a", 3)))
    staged = commit(table, fast(file("b", 4), stage_only=True))
    assert staged.next_row_id == 7
    picked = commit(staged, CherryPick(IO, staged.snapshots[-1].snapshot_id))
    # main moves to it, as it was built on its head
    assert (file_ids(picked), picked.next_row_id) == ({"a": 0, "b": 3}, 7)
    moved = commit(staged, fast(file("c", 5)))
    picked = commit(moved, CherryPick(IO, staged.snapshots[-1].snapshot_id))
    assert (file_ids(picked), picked.next_row_id) == ({"a": 0, "c": 7, "b": 12}, 16)


def test_encoded_files_are_numbered_like_others(tmp_path):
    form = DataFileForm(SPEC, SCHEMA)

    class Encoded(list):
        form = None

    files = Encoded([form.encode(file("a", 3)), form.encode(file("b", 4))])
    files.form = form
    table = commit(new_table(tmp_path), FastAppend(IO).append_encoded_files(files))
    assert file_ids(table) == {"a": 0, "b": 3}


def test_no_files_are_added_to_a_spec_with_an_unknown_transform(tmp_path):
    spec = PartitionSpec(0, (PartitionField(2, 1000, UnknownTransform("zorder"), "p"),))
    table = replace(new_table(tmp_path), partition_specs=(spec,))
    text = replace(file("a"), partition=("x",))
    with pytest.raises(UnsupportedError, match="transform zorder of its field 'p' is unknown"):
        fast(text).apply(table)


def raw_list(snapshot):
    """Return the data manifests of a list, as fastavro reads them."""
    content = BytesIO(Path(snapshot.manifest_list).read_bytes())
    return [record for record in fastavro.reader(content) if record.get("content", 0) == 0]


class Lake:
    """A table that random writers change, checked after each commit against the specification."""

    def __init__(self, folder, seed):
        self.random = random.Random(seed)
        self.names = (f"f{number}" for number in itertools.count())
        version = self.random.choice([1, 2, 3])
        merge = str(self.random.choice([1, 2, 3, 100]))
        properties = {"commit.manifest.min-count-to-merge": merge}
        self.table = new_table(folder, version, **properties)
        self.assigned = {}
        self.staged = []

    def files(self):
        drawn = self.random
        return [
            file(next(self.names), drawn.randrange(4), drawn.randrange(2))
            for _ in range(drawn.randint(1, 3))
        ]

    def there(self):
        current = self.table.current_snapshot()
        if current is None:
            return []
        manifests = read_manifests(IO, current)
        return [
            entry.data_file
            for manifest in manifests
            for entry in read_manifest(IO, manifest, discard_deleted=True)
        ]

    def operation(self):
        kinds = ["fast", "merge", "delete", "overwrite", "partitions", "manifests", "stage", "pick"]
        kind = self.random.choice(kinds)
        there = self.there()
        if kind == "pick" and self.staged:
            return CherryPick(IO, self.random.choice(self.staged))
        if kind == "delete" and there:
            return DeleteFiles(IO).delete_data_file(self.random.choice(there))
        if kind == "overwrite" and there:
            operation = OverwriteFiles(IO).delete_data_file(self.random.choice(there))
            return operation.append_data_file(self.files()[0])
        if kind == "partitions":
            return ReplacePartitions(IO).append_data_file(self.files()[0])
        if kind == "manifests":
            return RewriteManifests(IO)
        branch = self.random.choice([MAIN_BRANCH, MAIN_BRANCH, "dev"])
        options = {"stage_only": True} if kind == "stage" else {"branch": branch}
        return (fast if kind == "fast" else merging)(*self.files(), **options)

    def step(self):
        if self.table.format_version < 3 and self.random.random() < 0.15:
            version = self.table.format_version + 1
            update = UpgradeFormatVersionUpdate(version)
            self.table = update_table_metadata(self.table, (update,))
            return
        operation = self.operation()
        if self.random.random() < 0.3:
            # another writer is first: what was prepared is applied again
            try:
                operation.apply(self.table)
            except IcecombError:
                return
            self.commit(fast(*self.files()))
        self.commit(operation)

    def commit(self, operation):
        before = self.table
        try:
            self.table = commit(before, operation)
        except ValidationError:
            return
        new = self.table.snapshots[len(before.snapshots) :]
        for snapshot in new:
            if operation.is_staged(before):
                self.staged.append(snapshot.snapshot_id)
            self.check(before, snapshot)

    def check(self, before, snapshot):
        if before.format_version < 3:
            assert (snapshot.first_row_id, snapshot.added_rows) == (None, None)
            return
        assert snapshot.first_row_id == before.next_row_id
        parent = before.snapshot_by_id(snapshot.parent_snapshot_id or 0)
        known = {} if parent is None else {m["manifest_path"]: m for m in raw_list(parent)}
        number = before.next_row_id
        for manifest in raw_list(snapshot):
            kept = known.get(manifest["manifest_path"], {}).get("first_row_id")
            assert manifest["first_row_id"] == (number if kept is None else kept)
            if kept is None:
                number += manifest["added_rows_count"] + manifest["existing_rows_count"]
        assert snapshot.added_rows == number - before.next_row_id
        assert self.table.next_row_id == number
        found = file_ids(self.table, snapshot)
        inherited = {} if parent is None else file_ids(before, parent)
        rows = {
            one.file_path.rpartition("/")[2]: one.record_count for one in self.files_of(snapshot)
        }
        for name, first in found.items():
            if inherited.get(name) is not None:
                assert first == inherited[name]
            for row in range(first, first + rows[name]):
                assert row < number
                assert self.assigned.setdefault(row, name) == name

    @staticmethod
    def files_of(snapshot):
        return [
            entry.data_file
            for manifest in read_manifests(IO, snapshot)
            for entry in read_manifest(IO, manifest, discard_deleted=True)
        ]


@pytest.mark.seeds(60, gate=3)
def test_random_commits_never_use_an_id_twice_nor_change_one(tmp_path, seed):
    lake = Lake(tmp_path, seed)
    for _ in range(25):
        lake.step()
    if lake.table.format_version == 3:
        again = type(lake.table).from_json(lake.table.to_json())
        assert again.next_row_id == lake.table.next_row_id
