"""Snapshots that a write's query reads of the table whose rows it replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.spec.ancestry import is_ancestor
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.spark.planner.scan.read_options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.protocol.writes import QueriedTable
    from icecomb.spark.planner.table.states import TableState, TableStates


def oldest_read(
    states: TableStates,
    queried: Iterable[QueriedTable],
    metadata: TableMetadata,
    branch: str,
    head: int | None,
) -> int | None:
    """Return the snapshot since which concurrent commits may conflict with a write.

    A query may read an older snapshot of the table than the one that the write begins with: one
    that the session has cached, or that of an old DataFrame. What others added since then is not
    among the new rows. It is the oldest snapshot of the branch that is read, or the head; None if
    the branch was read before its first snapshot. A snapshot no longer in the branch's history
    counts as oldest.
    """
    # a missing branch will start at main's snapshot
    followed = branch if branch in metadata.refs else MAIN_BRANCH
    oldest = head
    for each in queried:
        state = states.find(each.reference)
        options = ReadOptions(each.options)
        if _branch_read(state, options) != followed:
            continue
        read = options.scan_of(state).snapshot()
        if read is None:
            return None
        number = read.snapshot_id
        if oldest is None or number == oldest or _is_newer(state.metadata, metadata, number):
            continue
        if not is_ancestor(metadata, number, head):
            return number
        if not is_ancestor(metadata, oldest, number):
            oldest = number
    return oldest


def _is_newer(read: TableMetadata, begun: TableMetadata, number: int) -> bool:
    """Return whether a snapshot was made after a write loaded the table."""
    return begun.snapshot_by_id(number) is None and read.last_updated_ms > begun.last_updated_ms


def _branch_read(state: TableState, options: ReadOptions) -> str | None:
    """Return the branch whose current rows a query reads; None if it reads others."""
    if state.metadata_table is not None or options.selects_snapshots():
        return None
    if state.time_travel and state.read_ref is None:
        return None
    return state.branch or options.text("branch") or state.ref or MAIN_BRANCH
