"""What a snapshot says of itself: when it was made, and what it removed although its manifests were merged."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from icecomb.format.manifests.manifest import DataFile
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.append import FastAppend, MergeAppend
from icecomb.format.operation.overwrite import DeleteFiles
from icecomb.format.scan.snapshot_changes import snapshot_changes
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()))


def new_table(tmp_path, **properties):
    return new_table_metadata(
        SCHEMA, PartitionSpec(), UNSORTED_SORT_ORDER, str(tmp_path), properties
    )


def data_file(name):
    return DataFile(
        file_path=f"/lake/{name}", partition=(), record_count=1, file_size_in_bytes=10, spec_id=0
    )


def committed(base, change):
    return update_table_metadata(base, change.apply(base).updates)


@pytest.mark.parametrize("version", ["1", "2"])
def test_a_snapshot_is_younger_than_what_it_follows_though_a_clock_is_behind(tmp_path, version):
    ahead = int(time.time() * 1000) + 3_600_000
    base = replace(new_table(tmp_path, **{"format-version": version}), last_updated_ms=ahead)
    table = committed(base, FastAppend(IO).append_data_file(data_file("a")))
    assert table.current_snapshot().timestamp_ms == ahead + 1
    assert table.last_updated_ms == ahead + 1


def test_a_snapshot_whose_manifests_were_merged_says_what_it_added_and_removed(tmp_path):
    """Changelogs, incremental scans and conflicts are told from these entries."""
    table = new_table(tmp_path, **{"commit.manifest.min-count-to-merge": "2"})
    for name in "abc":
        table = committed(table, FastAppend(IO).append_data_file(data_file(name)))
    table = committed(table, DeleteFiles(IO).delete_data_file("/lake/b"))
    snapshot = table.current_snapshot()
    found = snapshot_changes(IO, table, snapshot)
    assert (found.added, found.removed) == ((), ("/lake/b",))
    [manifest] = read_manifests(IO, snapshot)
    assert (manifest.existing_files_count, manifest.deleted_files_count) == (2, 1)
    table = committed(table, MergeAppend(IO).append_data_file(data_file("d")))
    snapshot = table.current_snapshot()
    found = snapshot_changes(IO, table, snapshot)
    assert (found.added, found.removed) == (("/lake/d",), ())
    [manifest] = read_manifests(IO, snapshot)
    counts = manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count
    assert counts == (1, 2, 0)
