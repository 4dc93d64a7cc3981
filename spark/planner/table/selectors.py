"""Selection of a table's branch, tag, snapshot, point in time or metadata table.

It is named below the table, as in Iceberg Java: ``db.t.branch_audit``, ``db.t.tag_q1``,
``db.t.snapshot_id_42``, ``db.t.at_timestamp_1700000000000`` (milliseconds), ``db.t.files``; or by
VERSION AS OF and TIMESTAMP AS OF. Branches can be written to by their names, versions cannot.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.inspect.inspection import NAMES, TIME_TRAVELLING
from icecomb.format.rows.values.metadata_columns import lineage
from icecomb.spark.planner.table.change_columns import CHANGES

if TYPE_CHECKING:
    from icecomb.format.scan.table_scan import TableScan
    from icecomb.spark.planner.table.states import TableState

_SELECTOR: Final = re.compile(r"(branch|tag)_(.+)|(snapshot_id|at_timestamp)_([0-9]+)", re.DOTALL)
MOVED_ROWS: Final = "moved_rows"
"""The name below a table of version 3 by which `rewrite_data_files` names its rows with their
lineage; there is nothing to read there for others."""
SELECTORS: Final = (
    f"branch_…, tag_…, snapshot_id_…, at_timestamp_… (ms) and the metadata tables "
    f"{', '.join((*NAMES, CHANGES))}"
)
"""All selectors, for messages."""


def select(state: TableState, selector: str) -> TableState | None:
    """Return the state that a name below a table's refers to; None if it is not a selector."""
    if selector.lower() in {*NAMES, CHANGES}:
        return replace(state, metadata_table=selector.lower())
    if selector == MOVED_ROWS and lineage(state.metadata):
        return replace(state, moves_rows=True)
    found = _SELECTOR.fullmatch(selector)
    if found is None:
        return None
    kind, ref, number_kind, digits = found.groups()
    if kind is not None:
        chosen = use_ref(state, ref)
        return replace(state, branch=ref) if kind == "branch" else _travelled(state, chosen)
    if number_kind == "at_timestamp":
        return at_time(state, int(digits) * 1000)
    if state.metadata.snapshot_by_id(int(digits)) is None:
        raise _no_version(state, digits)
    return replace(state, travelled_to=int(digits))


def at_version(state: TableState, version: str) -> TableState:
    """Return the state at a snapshot id, branch or tag; digits are tried as an id first."""
    _check_travels(state)
    if version.isdecimal() and state.metadata.snapshot_by_id(int(version)) is not None:
        return replace(state, travelled_to=int(version))
    return _travelled(state, use_ref(state, version))


def at_time(state: TableState, timestamp_us: int) -> TableState:
    """Return the state as of a time in microseconds, according to the snapshot log."""
    _check_travels(state)
    try:
        return _travelled(state, state.scan().as_of(timestamp_us // 1000))
    except NoSuchSnapshotError as error:
        raise NoSuchSnapshotError(
            f"Table {state.name}: {error.message}", hint=error.hint, table=state.name
        ) from None


def use_ref(state: TableState, name: str) -> TableScan:
    """Return the scan of a branch or tag."""
    try:
        return state.scan().use_ref(name)
    except NoSuchSnapshotError as error:
        raise _no_version(state, name, error.hint) from None


def _no_version(state: TableState, version: str, hint: str | None = None) -> NoSuchSnapshotError:
    return NoSuchSnapshotError(
        f"Table {state.name} has no snapshot, branch or tag {version!r}",
        hint=hint or f"Look at the metadata table {state.name}.snapshots.",
        table=state.name,
    )


def _check_travels(state: TableState) -> None:
    if state.time_travel or state.branch is not None:
        raise ValidationError(
            f"The name below table {state.name} already says which of its states is meant",
            hint="Leave VERSION or TIMESTAMP AS OF out, or name the table itself.",
        )
    check_shows_one_snapshot(state)


def check_shows_one_snapshot(state: TableState) -> None:
    """Refuse to select a snapshot of a metadata table that shows all snapshots."""
    table = state.metadata_table
    # the logs show the whole table, whatever the snapshot, as in Iceberg Java
    if table is not None and (table == CHANGES or table.startswith("all_")):
        raise ValidationError(
            f"Cannot select a snapshot in {state.name}.{table}: it shows all snapshots",
            hint=f"Of one snapshot are {', '.join(TIME_TRAVELLING)}.",
        )


def _travelled(state: TableState, scan: TableScan) -> TableState:
    snapshot = scan.snapshot()
    # the branch main of a table without snapshots is the table itself
    return replace(state, travelled_to=snapshot.snapshot_id if snapshot else None, ref=scan.ref)
