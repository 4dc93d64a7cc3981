"""Rows that others added are a conflict whatever the operation was that added them."""

from __future__ import annotations

import struct

import pytest

from icecomb.format.errors import ConflictError
from icecomb.format.expressions.sql.parser import parse
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.conflict import History
from icecomb.format.operation.overwrite import OverwriteFiles, ReplacePartitions, RewriteFiles
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Operation
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO

IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()))


def data_file(name, least, greatest):
    return DataFile(
        file_path=f"/lake/{name}",
        partition=(),
        record_count=10,
        file_size_in_bytes=10,
        value_counts={1: 10},
        null_value_counts={1: 0},
        lower_bounds={1: struct.pack("<q", least)},
        upper_bounds={1: struct.pack("<q", greatest)},
        spec_id=0,
    )


OLD, NEW = data_file("old", 0, 9), data_file("new", 50, 59)
OTHERS = {
    "an append": (lambda: FastAppend(IO).append_data_file(NEW), Operation.APPEND),
    "an overwrite of other rows": (
        lambda: OverwriteFiles(IO).delete_data_file(OLD).append_data_file(NEW),
        Operation.OVERWRITE,
    ),
    "a replacement of everything": (
        lambda: ReplacePartitions(IO).append_data_file(NEW),
        Operation.OVERWRITE,
    ),
    "a row delta": (lambda: RowDelta(IO).remove_rows(OLD).add_rows(NEW), Operation.OVERWRITE),
}


def history(tmp_path, change):
    """What happened since OLD was there."""
    base = new_table_metadata(SCHEMA, PartitionSpec(), UNSORTED_SORT_ORDER, str(tmp_path))
    added = FastAppend(IO).append_data_file(OLD)
    base = update_table_metadata(base, added.apply(base).updates)
    start = base.current_snapshot_id
    after = update_table_metadata(base, change.apply(base).updates)
    return History(IO, after, after.current_snapshot(), start)


@pytest.mark.parametrize("other", OTHERS)
def test_new_rows_are_a_conflict_where_they_may_match(tmp_path, other):
    change, operation = OTHERS[other]
    found = history(tmp_path, change())
    assert [snapshot.operation for snapshot in found.snapshots] == [operation]
    with pytest.raises(ConflictError, match="/lake/new"):
        found.no_new_data(parse("id = 55"))
    found.no_new_data(parse("id = 5"))


def test_rows_that_were_only_written_anew_are_no_new_rows(tmp_path):
    rewrite = RewriteFiles(IO).rewrite_files([OLD], [data_file("new", 0, 9)])
    history(tmp_path, rewrite).no_new_data(parse("id = 5"))
