"""A batch of a streaming query is committed once, however often it is run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from icecomb.format.errors import CommitFailedError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.operation.append import FastAppend
from icecomb.format.spec.metadata import new_table_metadata
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import UNSORTED_SORT_ORDER
from icecomb.format.spec.types import LongType, NestedField
from icecomb.format.spec.update import update_table_metadata
from icecomb.format.storage.file_io import FileIO
from icecomb.spark.planner.protocol import Epoch, StreamedWrite
from icecomb.spark.planner.streams.epoch import EpochChange, EpochThereError

IO = FileIO()
SCHEMA = Schema(NestedField(1, "id", LongType()))
QUERY, EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"


def append(name, query=None, number=None):
    told = {} if query is None else {QUERY: query, EPOCH: str(number)}
    file = DataFile(
        file_path=f"/lake/{name}", partition=(), record_count=1, file_size_in_bytes=1, spec_id=0
    )
    return FastAppend(IO, told).append_data_file(file)


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
    with pytest.raises(EpochThereError, match=f"Batch {number} is committed already"):
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
