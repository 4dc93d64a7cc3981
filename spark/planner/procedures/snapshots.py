"""Procedures that choose which snapshot a table or branch shows."""

from __future__ import annotations

from dataclasses import dataclass

from icecomb.catalog.table import Table
from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.evolution.staging import staged_snapshot
from icecomb.format.spec.ancestry import ancestors_of as ancestors
from icecomb.spark.planner.procedures.call import Call
from icecomb.spark.planner.procedures.signature import Instant, Long, Text, procedure


@dataclass(frozen=True, slots=True)
class Moved:
    """What `main` showed before, and shows now."""

    previous_snapshot_id: Long
    current_snapshot_id: Long


@dataclass(frozen=True, slots=True)
class SetTo:
    """The same for a table that may have been empty."""

    previous_snapshot_id: Long | None
    current_snapshot_id: Long


@dataclass(frozen=True, slots=True)
class Picked:
    """The snapshot that was picked, and what `main` shows now."""

    source_snapshot_id: Long
    current_snapshot_id: Long


@dataclass(frozen=True, slots=True)
class FastForwarded:
    """What a branch showed before, and shows now."""

    branch_updated: Text
    previous_ref: Long | None
    updated_ref: Long


@dataclass(frozen=True, slots=True)
class Ancestor:
    """A snapshot, and when it was made, in milliseconds since 1970 UTC."""

    snapshot_id: Long | None
    timestamp: Long | None


@procedure
def rollback_to_snapshot(call: Call, table: Text, snapshot_id: Long) -> list[Moved]:
    """Point main back to one of its earlier snapshots."""
    found = call.load(table)
    before = _current(found)
    with found.manage_snapshots() as manage:
        manage.rollback_to_snapshot(snapshot_id)
    call.changed(found)
    return [Moved(before, snapshot_id)]


@procedure
def rollback_to_timestamp(call: Call, table: Text, timestamp: Instant) -> list[Moved]:
    """Point main back to its newest snapshot that is older than a time."""
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
    """Point main to any snapshot, given by its id, or by a branch or tag."""
    if (snapshot_id is None) is (ref is None):
        raise ValidationError(
            "set_current_snapshot takes either snapshot_id or ref, not both or none",
            hint="give exactly one of them",
        )
    found = call.load(table)
    before = found.metadata.current_snapshot_id
    with found.manage_snapshots() as manage:
        manage.set_current_snapshot(snapshot_id, ref)
    call.changed(found)
    return [SetTo(before, _current(found))]


@procedure
def cherrypick_snapshot(call: Call, table: Text, snapshot_id: Long) -> list[Picked]:
    """Make the changes of a snapshot again on main."""
    found = call.load(table)
    with found.manage_snapshots() as manage:
        manage.cherry_pick(snapshot_id)
    call.changed(found)
    return [Picked(snapshot_id, _current(found))]


@procedure
def publish_changes(call: Call, table: Text, wap_id: Text) -> list[Picked]:
    """Make main show what was staged under a wap.id."""
    found = call.load(table)
    source = staged_snapshot(found.metadata, wap_id).snapshot_id
    with found.manage_snapshots() as manage:
        manage.cherry_pick(source)
    call.changed(found)
    return [Picked(source, _current(found))]


@procedure
def fast_forward(call: Call, table: Text, branch: Text, to: Text) -> list[FastForwarded]:
    """Move a branch forward to where another branch or a tag is."""
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
    """List a snapshot and those that it came from, the newest first."""
    metadata = call.load(table).metadata
    if snapshot_id is not None and not metadata.has_snapshot(snapshot_id):
        raise NoSuchSnapshotError(
            f"Table {table} has no snapshot {snapshot_id}",
            hint="look for its id in the snapshots of the table; it may have expired",
            snapshot_id=snapshot_id,
        )
    start = metadata.current_snapshot_id if snapshot_id is None else snapshot_id
    return [Ancestor(s.snapshot_id, s.timestamp_ms) for s in ancestors(metadata, start)]


def milliseconds(microseconds: int) -> int:
    """A time of Spark as Iceberg has it; what is below a millisecond is cut off, as in Java."""
    return microseconds // 1000


def _current(table: Table) -> int:
    """The current snapshot of a table that has one.

    Raises:
        NoSuchSnapshotError: It has none.
    """
    current = table.metadata.current_snapshot_id
    if current is None:
        raise NoSuchSnapshotError(
            f"Table {'.'.join(table.name())} has no snapshot yet",
            hint="there is nothing to choose before the first write",
        )
    return current
