"""CHANGES FROM: its range of commits, and the rows given to Spark.

Spark recognizes rows that a commit rewrote unchanged by columns for their id and their version,
which must be among those that the user sees. So the planner itself leaves such rows out, by their
lineage, and without lineage, in format version 2, shows all rows that a commit deleted and inserted
or, if it rewrote files, nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import NoSuchSnapshotError, UnsupportedError, ValidationError
from icecomb.format.rows.values.metadata_columns import lineage
from icecomb.format.scan.snapshot_changes import snapshot_changes
from icecomb.format.spec.snapshot import Operation, ancestors_of
from icecomb.format.sql_statement import printed_text
from icecomb.spark.planner.changes.files import older_than_lineage
from icecomb.spark.planner.protocol.changes import LoadChangelog, LoadedChangelog
from icecomb.spark.planner.table.audit import branch_to_read
from icecomb.spark.planner.table.change_columns import CHANGED_ROWS, CHANGES_FROM, UPDATED_ROWS
from icecomb.spark.planner.table.tables import described

if TYPE_CHECKING:
    from collections.abc import Sequence

    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.spark.planner.protocol.changes import ChangelogRange
    from icecomb.spark.planner.table.states import TableState, TableStates

_ALL: Final = "none"
_NET: Final = "netChanges"
_VIEW: Final = "CALL system.create_changelog_view compares rows"


class Changelogs:
    """The protocol's method that loads a changelog."""

    def __init__(self, states: TableStates) -> None:
        self._states = states

    def load_changelog(self, request: LoadChangelog) -> LoadedChangelog:
        state = self._states.load(request.catalog, request.table)
        if state.time_travel or state.metadata_table is not None:
            raise ValidationError(
                f"CHANGES FROM is about a table or a branch of it, not about "
                f"{'.'.join((*request.table.namespace, request.table.name))}",
                hint=f"Name the table {state.name} itself.",
                table=state.name,
            )
        if not state.is_selected and (branch := branch_to_read(request.audit, state.metadata)):
            state = replace(state, ref=branch)
        line, chosen = _commits(state, request.range)
        kind = _kind(state, request)
        _check_shown(state, chosen, request, kind)
        after, until = _ends(state, line, chosen)
        shown = replace(state, metadata_table=kind, changes_after=after, changes_until=until)
        by_identifiers = request.compute_updates and kind != UPDATED_ROWS
        return LoadedChangelog(
            table=described(shown), identifiers=_identifiers(state) if by_identifiers else ()
        )


def _commits(
    state: TableState, wanted: ChangelogRange
) -> tuple[Sequence[Snapshot], Sequence[Snapshot]]:
    """Return the snapshots up to the end of a range, and those of them in the range."""
    end = state.snapshot_id
    if wanted.end_version is not None:
        end = _snapshot(state, wanted.end_version)
    line = list(ancestors_of(state.metadata, end))[::-1]
    first, last = 0, len(line)
    if wanted.start_version is not None:
        start = _snapshot(state, wanted.start_version)
        ids = [snapshot.snapshot_id for snapshot in line]
        if start not in ids:
            raise ValidationError(
                f"Table {state.name}: version {wanted.start_version} is not an ancestor of "
                f"{wanted.end_version or 'what the table shows'}",
                hint="Give versions of one line: CALL system.ancestors_of("
                f"{printed_text(state.name)}).",
                table=state.name,
            )
        first = ids.index(start) + (not wanted.start_inclusive)
        if wanted.end_version is not None and not wanted.end_inclusive:
            last -= 1
    elif wanted.start_us is not None:
        within = [at for at, snapshot in enumerate(line) if _is_within(snapshot, wanted)]
        # clocks of writers may differ: commits between two commits of the range are in it
        first, last = (within[0], within[-1] + 1) if within else (0, 0)
    return line, line[first:last]


def _is_within(snapshot: Snapshot, wanted: ChangelogRange) -> bool:
    time_us = snapshot.timestamp_ms * 1000
    start, end = wanted.start_us, wanted.end_us
    after = start is None or time_us > start or (wanted.start_inclusive and time_us == start)
    before = end is None or time_us < end or (wanted.end_inclusive and time_us == end)
    return after and before


def _snapshot(state: TableState, version: str) -> int:
    """Find the snapshot of an id, branch or tag, like VERSION AS OF."""
    metadata = state.metadata
    if version.isdecimal() and metadata.has_snapshot(int(version)):
        return int(version)
    found = metadata.snapshot_by_name(version)
    if found is None:
        raise NoSuchSnapshotError(
            f"Table {state.name} has no snapshot, branch or tag {version!r}",
            hint=f"Look at the metadata table {state.name}.snapshots; it may have expired.",
            table=state.name,
        )
    return found.snapshot_id


def _ends(
    state: TableState, line: Sequence[Snapshot], chosen: Sequence[Snapshot]
) -> tuple[int | None, int | None]:
    """Return the snapshot before the first of the chosen commits, and the last of them."""
    if not chosen:
        nothing = line[-1].snapshot_id if line else None
        return nothing, nothing
    parent = chosen[0].parent_snapshot_id
    known = parent is not None and state.metadata.has_snapshot(parent)
    return parent if known else None, chosen[-1].snapshot_id


def _kind(state: TableState, request: LoadChangelog) -> str:
    """Return one of `KINDS_OF_CHANGES_FROM`."""
    if not lineage(state.metadata):
        return CHANGES_FROM
    if request.compute_updates and not state.metadata.schema().identifier_field_ids:
        return UPDATED_ROWS
    return CHANGES_FROM if request.deduplication == _ALL else CHANGED_ROWS


def _check_shown(
    state: TableState, chosen: Sequence[Snapshot], request: LoadChangelog, kind: str
) -> None:
    """Refuse requests that cannot be answered from the commits."""
    if request.deduplication == _NET:
        raise UnsupportedError(
            f"CHANGES FROM table {state.name} cannot leave out what later commits undid: Spark "
            "orders commits by their versions, and ids of snapshots have no order",
            hint=f"{_VIEW}: net_changes => true.",
            table=state.name,
        )
    if request.deduplication == _ALL and not request.compute_updates:
        return
    for snapshot in chosen:
        if snapshot.operation == Operation.REPLACE:
            continue
        older = None if kind == CHANGES_FROM else older_than_lineage(state.metadata, snapshot)
        if older is not None and kind == UPDATED_ROWS:
            raise UnsupportedError(
                f"Updates of table {state.name} cannot be computed: rows of snapshot "
                f"{older.snapshot_id} have no ids, it is older than the table's upgrade to format "
                "version 3",
                hint="Begin later; or ALTER TABLE … SET IDENTIFIER FIELDS.",
                table=state.name,
            )
        if kind != CHANGES_FROM and older is None and request.deduplication != _ALL:
            continue
        changes = snapshot_changes(state.io, state.metadata, snapshot)
        if changes.added and changes.removed:
            raise UnsupportedError(
                f"Snapshot {snapshot.snapshot_id} of table {state.name} rewrote rows: its files "
                "do not say which of them changed",
                hint=f"Ask for all with WITH (deduplicationMode = 'none'), without computeUpdates; "
                f"{_VIEW}; write.delete.mode, write.update.mode and write.merge.mode = "
                "merge-on-read do not rewrite rows.",
                table=state.name,
            )


def _identifiers(state: TableState) -> tuple[str, ...]:
    """Return the columns by which a deletion and an insertion are matched to an update."""
    names = sorted(state.metadata.schema().identifier_field_names())
    if not names or any("." in name for name in names):
        raise UnsupportedError(
            f"Updates of table {state.name} cannot be computed: "
            + ("an identifier field is in a struct" if names else "it has no identifier fields"),
            hint="ALTER TABLE … SET IDENTIFIER FIELDS with columns, or leave computeUpdates out.",
            table=state.name,
        )
    return tuple(names)
