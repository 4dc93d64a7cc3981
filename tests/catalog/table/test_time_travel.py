"""One instant, one answer: whoever asks what a table was like at a time."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest

from icecomb.format.errors import NoSuchSnapshotError, ValidationError

ROWS = pa.table({"id": pa.array([1], pa.int64())})


@pytest.fixture
def table(lake):
    """Three snapshots, some milliseconds apart."""
    table = lake.create_table("db.t", ROWS.schema)
    for _ in range(3):
        table.append(ROWS)
        time.sleep(0.01)
    return table


def answers(table, instant):
    """What `scan().as_of`, `snapshot_as_of_timestamp` and a reading of the metadata find."""
    try:
        scanned = table.scan().as_of(instant).snapshot_id
    except NoSuchSnapshotError:
        scanned = None
    found = table.snapshot_as_of_timestamp(instant)
    return scanned, None if found is None else found.snapshot_id


def rolled_back(table, instant):
    with table.manage_snapshots() as manage:
        manage.rollback_to_timestamp(instant)
    return table.current_snapshot().snapshot_id


def test_an_instant_whose_snapshot_has_expired_is_nobodys(table):
    first, second, third = table.snapshots()
    table.manage_snapshots().create_tag(first.snapshot_id, "kept").commit()
    table.expire_snapshots().by_id(second.snapshot_id).commit()
    instant = second.timestamp_ms + 1
    assert table.snapshot_by_id(first.snapshot_id) == first
    assert answers(table, instant) == (None, None)
    # what came before the expired one is no known ancestor either
    with pytest.raises(NoSuchSnapshotError, match="have expired"):
        rolled_back(table, instant)
    assert answers(table, third.timestamp_ms) == (third.snapshot_id, third.snapshot_id)


def test_a_log_that_still_names_the_expired_one_gives_no_older_one(table):
    # files of other writers: Iceberg Java cuts the log when it expires, PyIceberg does not
    from dataclasses import replace

    first, second, third = table.snapshots()
    kept = tuple(s for s in table.snapshots() if s != second)
    metadata = replace(table.metadata, snapshots=kept)
    assert metadata.snapshot_as_of(first.timestamp_ms) == first
    with pytest.raises(
        NoSuchSnapshotError, match=f"Snapshot {second.snapshot_id}, which .* expired"
    ):
        metadata.snapshot_as_of(second.timestamp_ms + 1)
    assert metadata.snapshot_as_of(third.timestamp_ms) == third
    with pytest.raises(NoSuchSnapshotError, match=f"{second.snapshot_id}"):
        replace(table.scan(), metadata=metadata).as_of(second.timestamp_ms + 1)


def test_a_rollback_goes_by_ancestors_and_is_strictly_older_as_in_iceberg_java(table):
    # SetSnapshotOperation.rollbackToTime against SnapshotUtil.snapshotIdAsOfTime
    first, second, third = table.snapshots()
    assert answers(table, second.timestamp_ms) == (second.snapshot_id, second.snapshot_id)
    assert rolled_back(table, second.timestamp_ms) == first.snapshot_id
    table.append(ROWS)
    # the log still knows what was current then, though it is no ancestor any more
    assert answers(table, third.timestamp_ms) == (third.snapshot_id, third.snapshot_id)
    assert rolled_back(table, third.timestamp_ms + 1) == first.snapshot_id


@pytest.mark.parametrize("instant", [1, -(2**60)])
def test_before_the_first_snapshot_there_is_none(table, instant):
    assert answers(table, instant) == (None, None)
    with pytest.raises(NoSuchSnapshotError):
        rolled_back(table, instant)


@pytest.mark.parametrize("instant", ["2026-01-01", 1.5, None, True, 2**70])
def test_what_is_no_time_is_refused(table, instant):
    for ask in (table.scan().as_of, table.snapshot_as_of_timestamp, table.metadata.snapshot_as_of):
        with pytest.raises(ValidationError):
            ask(instant)
    with pytest.raises(ValidationError):
        table.snapshot_as_of_timestamp(instant, inclusive=False)
    with pytest.raises(ValidationError):
        rolled_back(table, instant)
