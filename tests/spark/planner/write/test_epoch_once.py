"""A batch of a streaming query is committed once, however often it is run."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.format.errors import CommitFailedError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.operation.append import FastAppend
from icecomb.format.operation.snapshot_management import ManageSnapshots
from icecomb.format.spec.change.update import update_table_metadata
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.storage.file_io import FileIO
from icecomb.spark.planner.options import Options
from icecomb.spark.planner.protocol.writes import Epoch, StreamedWrite, StreamingQuery
from icecomb.spark.planner.table.audit import CommitTarget
from icecomb.spark.planner.write.epoch import EpochChange, EpochThereError, streamed_write

IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()))
QUERY, EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"


def append(name, query=None, number=None, branch="main"):
    told = {} if query is None else {QUERY: query, EPOCH: str(number)}
    file = DataFile(
        file_path=f"/lake/{name}", partition=(), record_count=1, file_size_in_bytes=1, spec_id=0
    )
    return FastAppend(IO, told, branch).append_data_file(file)


def epoch(number, *, query="mine", lost_ms=None, planned_ms=None, commit_epoch=None):
    producer = append("new", query, number)
    change: Any = SimpleNamespace(producer=producer, apply=producer.apply, starting_point=None)
    write: Any = SimpleNamespace(branch="main", operation="append", identifier=("db", "t"))
    streamed = StreamedWrite(query, False, lost_ms, commit_epoch)
    return EpochChange(change, write, streamed, Epoch(number, planned_ms))


@pytest.fixture
def table(tmp_path):
    """It has batch 4 of a query, batch 9 of another, and rows of no query after them."""
    found = new_table_metadata(SCHEMA, PartitionSpec(), UNSORTED_SORT_ORDER, str(tmp_path))
    for change in (append("a", "mine", 4), append("b", "other", 9), append("c")):
        found = update_table_metadata(found, change.apply(found).updates)
    return found


@pytest.mark.parametrize("number", [0, 3, 4])
def test_a_batch_up_to_the_last_that_is_there_is_not_committed_again(table, number):
    with pytest.raises(EpochThereError, match=f"Batch {number} is already committed"):
        epoch(number).apply(table)


@pytest.mark.parametrize("number", [5, 6])
def test_a_later_batch_is_committed(table, number):
    after = update_table_metadata(table, epoch(number).apply(table).updates)
    assert after.current_snapshot().summary[EPOCH] == str(number)


def test_batches_of_other_queries_do_not_count(table):
    assert epoch(0, query="third").apply(table).updates


def test_a_query_of_which_snapshots_may_have_expired_is_asked_about_unless_it_is_newer(table):
    with pytest.raises(CommitFailedError, match="may have been committed"):
        epoch(7, query="third", lost_ms=1000).apply(table)
    with pytest.raises(CommitFailedError, match="may have been committed"):
        epoch(7, query="third", lost_ms=1000, planned_ms=1000).apply(table)
    assert epoch(7, query="third", lost_ms=1000, planned_ms=1001).apply(table).updates
    assert epoch(7, query="third", lost_ms=1000, commit_epoch=7).apply(table).updates


def committed(table, change):
    return update_table_metadata(table, change.apply(table).updates)


def managed(table, change):
    manage = ManageSnapshots(table, IO)
    change(manage)
    return update_table_metadata(table, manage.apply(table).updates)


def replaced(table):
    """REPLACE TABLE AS SELECT from itself: the rows are there, by a snapshot without a parent."""
    moved = replace(table, refs={}, current_snapshot_id=None)
    return committed(moved, append("all"))


def lost_ms(table, query="mine", branch="main"):
    state: Any = SimpleNamespace(metadata=table, name="db.t")
    return streamed_write(
        StreamingQuery(query, ""), state, CommitTarget(branch), Options({}, {})
    ).lost_ms


@pytest.mark.parametrize("way", ["replaced", "rolled back", "branch made anew"])
def test_a_batch_whose_snapshot_is_beside_the_branch_is_refused_by_name(table, way):
    there = committed(table, epoch(5))
    number = there.current_snapshot_id
    if way == "replaced":
        there = replaced(there)
    elif way == "rolled back":
        there = managed(there, lambda to: to.rollback_to_snapshot(table.current_snapshot_id))
    else:
        there = managed(there, lambda to: to.create_branch(number, "kept"))
        there = managed(there, lambda to: to.set_current_snapshot(table.current_snapshot_id))
    told = rf"batch 5 of .* mine .*: snapshot {number} of it is in the table's history, but not on"
    for change in (epoch(5), epoch(5, planned_ms=1)):
        with pytest.raises(CommitFailedError, match=told) as caught:
            change.apply(there)
        assert "commits/5" in str(caught.value)
        assert "commit-epoch" in str(caught.value)
    # what was planned later is another batch, as after a rewound checkpoint
    later = there.snapshot_by_id(number).timestamp_ms + 1
    for change in (epoch(5, planned_ms=later), epoch(5, commit_epoch=5), epoch(6)):
        assert change.apply(there).updates
    assert epoch(5, query="third").apply(there).updates


def test_a_replaced_table_whose_old_snapshots_expired_may_have_had_the_batch(table):
    there = replaced(committed(table, epoch(5)))
    oldest = there.current_snapshot()
    assert lost_ms(there) is None
    expired = replace(there, snapshots=(oldest,))
    assert lost_ms(expired) == oldest.timestamp_ms
    with pytest.raises(CommitFailedError, match="may have been committed"):
        epoch(5, lost_ms=lost_ms(expired), planned_ms=1).apply(expired)


def test_a_table_all_of_whose_snapshots_are_known_had_no_other_batch(table):
    assert lost_ms(table, "third") is None
    assert lost_ms(replaced(table), "third") is None


def test_a_batch_that_was_picked_is_there_and_those_before_and_after_it_are_counted_right(table):
    head = table.current_snapshot_id
    there = managed(table, lambda to: to.create_branch(head, "audit"))
    staged = append("picked", "mine", 5, "audit")
    there = committed(there, staged)
    there = committed(committed(there, append("d")), epoch(7))
    there = managed(there, lambda to: to.cherry_pick(staged.snapshot_id))
    picked = there.current_snapshot().summary
    assert picked["source-snapshot-id"] == str(staged.snapshot_id)
    assert picked["icecomb.picked-batch"] == "5 mine"
    assert QUERY not in picked, "Iceberg Java's sink would take it for the last"
    for number in (5, 6, 7):
        with pytest.raises(EpochThereError):
            epoch(number).apply(there)
    assert epoch(8).apply(there).updates
