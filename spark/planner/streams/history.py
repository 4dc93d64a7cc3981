"""The history of a table's branch, which a stream follows without skipping a snapshot.

If a step is unknown, because a snapshot has expired or the branch was rolled back, the stream ends
with an error: continuing from the next known snapshot would silently lose rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from icecomb.format.errors import NoSuchSnapshotError, ValidationError
from icecomb.format.spec.ancestry import ancestors_of
from icecomb.format.spec.snapshot import MAIN_BRANCH
from icecomb.spark.planner.streams.offset import BEFORE_ALL, StreamOffset

if TYPE_CHECKING:
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot

_AFRESH = (
    "start the query with a new checkpoint: it then reads all rows of the table, "
    "or those appended since the option stream-from-timestamp"
)


class History:
    """The snapshots of a branch, which must exist."""

    def __init__(self, name: str, metadata: TableMetadata, branch: str = MAIN_BRANCH) -> None:
        self._name = name
        self._metadata = metadata
        self._branch = branch
        ref = metadata.refs.get(branch)
        if branch != MAIN_BRANCH and (ref is None or not ref.is_branch):
            found = "no branch" if ref is None else "a tag, not a branch,"
            names = sorted(n for n, other in metadata.refs.items() if other.is_branch)
            raise NoSuchSnapshotError(
                f"Table {name} has {found} that is called {branch}: a stream cannot follow it",
                hint=f"its branches: {', '.join(names) or MAIN_BRANCH}; one that was dropped is "
                f"followed again if its history has the query's last snapshot, otherwise {_AFRESH}",
                table=name,
            )
        self._head = metadata.current_snapshot_id if ref is None else ref.snapshot_id

    def beginning(self, from_timestamp: int | None) -> StreamOffset:
        """Return the offset at which a new stream begins.

        Without a time that is the first snapshot of the table. If it has expired, it is the oldest
        remaining snapshot with all its files, of which Iceberg Java reads only those that it added.

        Args:
            from_timestamp: The earliest time of snapshots to read, in ms since 1970; None for all.
        """
        line = list(ancestors_of(self._metadata, self._head))
        if not line:
            return BEFORE_ALL
        if from_timestamp is None:
            oldest = line[-1]
            return StreamOffset(
                oldest.snapshot_id, 0, scan_all_files=oldest.parent_snapshot_id is not None
            )
        first = self.first_of(line, from_timestamp)
        return BEFORE_ALL if first is None else StreamOffset(first.snapshot_id, 0)

    def first_of(self, line: list[Snapshot], from_timestamp: int | None) -> Snapshot | None:
        """Return the first snapshot of a time (in ms since 1970; None for any) or later.

        Args:
            line: A snapshot, its parent and so on.
        """
        first = None
        for snapshot in line:
            if from_timestamp is not None and snapshot.timestamp_ms < from_timestamp:
                return first
            first = snapshot
        if first is not None and first.parent_snapshot_id is not None:
            raise NoSuchSnapshotError(
                f"Table {self._name} does not know any more what was appended before snapshot "
                f"{first.snapshot_id} of {first.timestamp_ms} (ms since 1970): snapshots expired",
                hint=f"set stream-from-timestamp to {first.timestamp_ms + 1} or later; without it "
                "a new query begins with all rows of the oldest snapshot",
                table=self._name,
            )
        return first

    def head(self, until: StreamOffset | None) -> Snapshot | None:
        """Return the last snapshot that a query reads: the branch's head, or the query's end."""
        if until is None:
            return next(ancestors_of(self._metadata, self._head), None)
        if until == BEFORE_ALL:
            return None
        for snapshot in ancestors_of(self._metadata, self._head):
            if snapshot.snapshot_id == until.snapshot_id:
                return snapshot
        raise self._lost(until.snapshot_id, self._head)

    def between(self, start: int, end: int) -> list[Snapshot]:
        """Return the snapshots from one to another, inclusive, oldest first."""
        line: list[Snapshot] = []
        for snapshot in ancestors_of(self._metadata, end):
            line.append(snapshot)
            if snapshot.snapshot_id == start:
                return line[::-1]
        raise self._lost(start, end)

    def before(self, end: int, from_timestamp: int | None) -> StreamOffset:
        """Return the offset of the first snapshot, up to another, for a stream begun at none."""
        line = list(ancestors_of(self._metadata, end))
        if not line:
            raise self._lost(end, end)
        first = self.first_of(line, from_timestamp)
        return BEFORE_ALL if first is None else StreamOffset(first.snapshot_id, 0)

    def _lost(self, start: int, end: int | None) -> NoSuchSnapshotError | ValidationError:
        """Return the error that explains why one snapshot is not an ancestor of another."""
        known = self._metadata.has_snapshot(start)
        oldest = [None, *ancestors_of(self._metadata, end)][-1]
        broken = oldest is not None and oldest.parent_snapshot_id is not None
        if known and not broken:
            lead = "Table" if self._branch == MAIN_BRANCH else f"Branch {self._branch} of table"
            return ValidationError(
                f"{lead} {self._name} was rolled back or replaced: the stream is at "
                f"snapshot {start}, which is not an ancestor of snapshot {end}",
                hint=f"restore a history of {self._branch} with that snapshot, or {_AFRESH}",
                table=self._name,
                snapshot_id=start,
            )
        lost = start if not known or oldest is None else oldest.parent_snapshot_id
        return NoSuchSnapshotError(
            f"The stream is at snapshot {start} of table {self._name}, and snapshot {lost} "
            "is not there any more: it expired, or the table was re-created",
            hint=f"{_AFRESH}; keep snapshots (history.expire.max-snapshot-age-ms) for longer than "
            "the query is ever stopped",
            table=self._name,
            snapshot_id=lost,
        )
