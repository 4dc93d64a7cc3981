"""Procedures that set the current snapshot of a table or branch."""

from __future__ import annotations

from dataclasses import dataclass

from icecomb.catalog.table.table import Table
from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.operation.snapshot_producer import staged_snapshot
from icecomb.format.spec.snapshot import ancestors_of as ancestors
from icecomb.spark.planner.procedures.call import Call
from icecomb.spark.planner.procedures.signature import Instant, Long, Text, procedure


@dataclass(frozen=True, slots=True)
class Moved:
    """The previous and the current snapshot of `main`."""

    previous_snapshot_id: Long
    current_snapshot_id: Long


@dataclass(frozen=True, slots=True)
class SetTo:
    """The previous and the current snapshot of a table that may have been empty."""

    previous_snapshot_id: Long | None
    current_snapshot_id: Long


@dataclass(frozen=True, slots=True)
class Picked:
    """The snapshot that was picked, and the current snapshot of `main`."""

    source_snapshot_id: Long
    current_snapshot_id: Long


@dataclass(frozen=True, slots=True)
class FastForwarded:
    """The previous and the current snapshot of a branch."""

    branch_updated: Text
    previous_ref: Long | None
    updated_ref: Long


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A snapshot and its time in milliseconds since 1970 UTC."""

    snapshot_id: Long | None
    timestamp: Long | None


@procedure
def rollback_to_snapshot(call: Call, table: Text, snapshot_id: Long) -> list[Moved]:
    """Roll main back to one of its earlier snapshots."""
    found = call.load(table)
    before = _current(found)
    with found.manage_snapshots() as manage:
        manage.rollback_to_snapshot(snapshot_id)
    call.changed(found)
    return [Moved(before, snapshot_id)]


@procedure
def rollback_to_timestamp(call: Call, table: Text, timestamp: Instant) -> list[Moved]:
    """Roll main back to its newest snapshot that is older than a time."""
    found = call.load(table)
    before = _current(found)
    with found.manage_snapshots() as manage:
        manage.rollback_to_timestamp(milliseconds(timestamp))
    call.changed(found)
    return [Moved(before, _current(found))]


@procedure
def set_current_snapshot(
    call: Call, table: Text, snapshot_id: Long | None = None, ref: Text | None = None
) -> list[SetTo]:
    """Set main to any snapshot, given by its id, or by a branch or tag."""
    if (snapshot_id is None) is (ref is None):
        raise ValidationError(
            "set_current_snapshot takes either snapshot_id or ref, not both or none",
            hint="Give exactly one of them.",
        )
    found = call.load(table)
    before = found.metadata.current_snapshot_id
    with found.manage_snapshots() as manage:
        manage.set_current_snapshot(snapshot_id, ref)
    call.changed(found)
    return [SetTo(before, _current(found))]


@procedure
def cherrypick_snapshot(call: Call, table: Text, snapshot_id: Long) -> list[Picked]:
    """Apply the changes of a snapshot to main."""
    found = call.load(table)
    with found.manage_snapshots() as manage:
        manage.cherry_pick(snapshot_id)
    call.changed(found)
    return [Picked(snapshot_id, _current(found))]


@procedure
def publish_changes(call: Call, table: Text, wap_id: Text) -> list[Picked]:
    """Publish on main the snapshot that was staged under a wap.id."""
    found = call.load(table)
    source = staged_snapshot(found.metadata, wap_id).snapshot_id
    with found.manage_snapshots() as manage:
        manage.cherry_pick(source)
    call.changed(found)
    return [Picked(source, _current(found))]


@procedure
def fast_forward(call: Call, table: Text, branch: Text, to: Text) -> list[FastForwarded]:
    """Fast-forward a branch to the snapshot of another branch or a tag."""
    found = call.load(table)
    there = found.refs().get(branch)
    before = None if there is None else there.snapshot_id
    with found.manage_snapshots() as manage:
        manage.fast_forward(branch, to)
    call.changed(found)
    after = found.refs()[branch].snapshot_id
    return [FastForwarded(branch, before, after)]


@procedure
def ancestors_of(call: Call, table: Text, snapshot_id: Long | None = None) -> list[Ancestor]:
    """List a snapshot and its ancestors, newest first."""
    metadata = call.load(table).metadata
    if snapshot_id is not None and not metadata.has_snapshot(snapshot_id):
        raise NoSuchSnapshotError(
            f"Table {table} has no snapshot {snapshot_id}",
            hint="Look for its id in the snapshots of the table; it may have expired.",
            snapshot_id=snapshot_id,
        )
    start = metadata.current_snapshot_id if snapshot_id is None else snapshot_id
    return [Ancestor(s.snapshot_id, s.timestamp_ms) for s in ancestors(metadata, start)]


def milliseconds(microseconds: int) -> int:
    """Convert a time of Spark to milliseconds, rounding down as in Java."""
    return microseconds // 1000


def _current(table: Table) -> int:
    """Return the current snapshot of a table, which must have one."""
    current = table.metadata.current_snapshot_id
    if current is None:
        raise NoSuchSnapshotError(
            f"Table {'.'.join(table.name())} has no snapshot yet",
            hint="There is nothing to select before the first write.",
        )
    return current
