"""Procedures that set the current snapshot of a table or branch, or bring a column back."""

from __future__ import annotations

from icecomb.catalog.table.table import Table
from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.evolution.schema_edit import find_deleted_column
from icecomb.format.operation.snapshot_producer import staged_snapshot
from icecomb.format.spec.metadata import existing_snapshot
from icecomb.format.spec.snapshot import ancestors_of as ancestors
from icecomb.spark.planner.procedures.call import Call, parse_name
from icecomb.spark.planner.procedures.signature import procedure


@procedure(
    "table! string, snapshot_id! bigint -> previous_snapshot_id bigint, current_snapshot_id bigint"
)
def rollback_to_snapshot(call: Call, table: str, snapshot_id: int) -> list[tuple[int, int]]:
    """Roll main back to one of its earlier snapshots."""
    found = call.load(table)
    before = _current(found)
    with found.manage_snapshots() as manage:
        manage.rollback_to_snapshot(snapshot_id)
    call.changed(found)
    return [(before, snapshot_id)]


@procedure(
    "table! string, timestamp! timestamp -> previous_snapshot_id bigint, current_snapshot_id bigint"
)
def rollback_to_timestamp(call: Call, table: str, timestamp: int) -> list[tuple[int, int]]:
    """Roll main back to its newest snapshot that is older than a time."""
    found = call.load(table)
    before = _current(found)
    with found.manage_snapshots() as manage:
        manage.rollback_to_timestamp(milliseconds(timestamp))
    call.changed(found)
    return [(before, _current(found))]


@procedure(
    "table! string, snapshot_id bigint, ref string "
    "-> previous_snapshot_id bigint?, current_snapshot_id bigint"
)
def set_current_snapshot(
    call: Call, table: str, snapshot_id: int | None, ref: str | None
) -> list[tuple[int | None, int]]:
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
    return [(before, _current(found))]


@procedure(
    "table! string, snapshot_id! bigint -> source_snapshot_id bigint, current_snapshot_id bigint"
)
def cherrypick_snapshot(call: Call, table: str, snapshot_id: int) -> list[tuple[int, int]]:
    """Apply the changes of a snapshot to main."""
    found = call.load(table)
    with found.manage_snapshots() as manage:
        manage.cherry_pick(snapshot_id)
    call.changed(found)
    return [(snapshot_id, _current(found))]


@procedure("table! string, wap_id! string -> source_snapshot_id bigint, current_snapshot_id bigint")
def publish_changes(call: Call, table: str, wap_id: str) -> list[tuple[int, int]]:
    """Publish on main the snapshot that was staged under a wap.id."""
    found = call.load(table)
    source = staged_snapshot(found.metadata, wap_id).snapshot_id
    with found.manage_snapshots() as manage:
        manage.cherry_pick(source)
    call.changed(found)
    return [(source, _current(found))]


@procedure(
    "table! string, branch! string, to! string "
    "-> branch_updated string, previous_ref bigint?, updated_ref bigint"
)
def fast_forward(call: Call, table: str, branch: str, to: str) -> list[tuple[str, int | None, int]]:
    """Fast-forward a branch to the snapshot of another branch or a tag."""
    found = call.load(table)
    there = found.refs().get(branch)
    before = None if there is None else there.snapshot_id
    with found.manage_snapshots() as manage:
        manage.fast_forward(branch, to)
    call.changed(found)
    after = found.refs()[branch].snapshot_id
    return [(branch, before, after)]


@procedure("table! string, snapshot_id bigint -> snapshot_id bigint?, timestamp bigint?")
def ancestors_of(call: Call, table: str, snapshot_id: int | None) -> list[tuple[int, int]]:
    """List a snapshot and its ancestors, newest first."""
    metadata = call.load(table).metadata
    if snapshot_id is not None:
        existing_snapshot(metadata, snapshot_id, f"Table {table} has")
    start = metadata.current_snapshot_id if snapshot_id is None else snapshot_id
    return [(s.snapshot_id, s.timestamp_ms) for s in ancestors(metadata, start)]


@procedure(
    "table! string, column! string -> restored_field_id int, applied_schema_id int, "
    "wrote_during_window boolean, was_identifier boolean"
)
def undelete_column(call: Call, table: str, column: str) -> list[tuple[int, int, bool, bool]]:
    """Add a dropped column again, with the values that files have of it."""
    found = call.load(table)
    path = parse_name(column) if "`" in column else column
    before = found.metadata
    with found.update_schema(case_sensitive=call.case_sensitive) as update:
        update.undelete_column(path)
    call.changed(found)
    schema = found.schema()
    name = column if isinstance(path, str) else ".".join(path)
    field = schema.find_field(name, call.case_sensitive)
    deleted = find_deleted_column(before, schema.find_parent_id(field.field_id), field.name)
    return [(field.field_id, schema.schema_id, deleted.written_since, deleted.was_identifier)]


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
