"""Tables whose older files are partitioned by a transform that icecomb does not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from icecomb.format.errors import UnsupportedError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.operation.append import FastAppend, MergeAppend
from icecomb.format.operation.overwrite import DeleteFiles
from icecomb.format.operation.rewrite_manifests import RewriteManifests
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.change.update import (
    AddPartitionSpecUpdate,
    SetDefaultSpecUpdate,
    update_table_metadata,
)
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionField, PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.transform import UnknownTransform, parse_transform
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()))
KNOWN = PartitionField(1, 1000, parse_transform("bucket[4]"), "p")
UNKNOWN = replace(KNOWN, transform=UnknownTransform("swirl[4]"))
EACH = {"commit.manifest.min-count-to-merge": "1"}


def file(name, partition=(), spec_id=1):
    return DataFile(
        file_path=f"/t/data/{name}",
        partition=partition,
        record_count=3,
        file_size_in_bytes=100,
        spec_id=spec_id,
    )


def applied(base, operation):
    return update_table_metadata(base, operation.apply(base).updates)


@pytest.fixture
def table(tmp_path):
    """Two files under a spec that becomes unknown, and an unpartitioned spec for new ones."""
    properties = {"format-version": "3", **EACH}
    spec = PartitionSpec(KNOWN, spec_id=0)
    made = new_table_metadata(SCHEMA, spec, UNSORTED_SORT_ORDER, str(tmp_path / "t"), properties)
    for name in "ab":
        made = applied(made, FastAppend(IO).append_data_file(file(name, (2,), 0)))
    updates = (AddPartitionSpecUpdate(PartitionSpec()), SetDefaultSpecUpdate())
    made = update_table_metadata(made, updates)
    return replace(made, partition_specs=(replace(spec, fields=(UNKNOWN,)), made.spec()))


def names(metadata, where="true"):
    tasks = TableScan(metadata, IO, where).plan_files()
    return sorted(task.file.file_path.rpartition("/")[2] for task in tasks)


def test_no_filter_leaves_files_out_by_their_partition(table):
    assert names(table, "id = 7") == ["a", "b"]


def test_new_files_go_to_a_known_spec_and_manifests_of_the_unknown_one_stay(table):
    before = read_manifests(IO, table.current_snapshot())
    for name in "cd":
        table = applied(table, MergeAppend(IO).append_data_file(file(name)))
    table = applied(table, FastAppend(IO).append_data_file(file("e")))
    table = applied(table, RewriteManifests(IO))
    manifests = read_manifests(IO, table.current_snapshot())
    assert [m for m in manifests if m.partition_spec_id == 0] == list(before)
    assert len(manifests) == 3
    assert names(table) == ["a", "b", "c", "d", "e"]


def test_no_file_is_added_to_the_unknown_spec(table):
    for operation in (FastAppend, MergeAppend):
        with pytest.raises(UnsupportedError, match=r"transform swirl\[4\] of its field 'p'"):
            operation(IO).append_data_file(file("c", ("x",), 0)).apply(table)


def test_entries_whose_partition_is_no_text_are_not_copied(table):
    """Their type is unknown: the specification has text (Partition Transforms)."""
    with pytest.raises(UnsupportedError, match=r"unknown transform swirl\[4\]"):
        DeleteFiles(IO).delete_data_file("/t/data/a").apply(table)
