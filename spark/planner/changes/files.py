"""Files changed by commits, and the rows that were inserted or deleted in them.

Rows of an added file were inserted, the live rows of a removed file were deleted. In a file that
stays, the rows that became deleted between the two snapshots were deleted.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow.compute as pc

from icecomb.format.arrow.number_view import numbers_of
from icecomb.format.cancellation import check_wanted
from icecomb.format.errors import NoSuchSnapshotError, UnsupportedError, ValidationError
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.manifests.manifest import ManifestContent, ManifestEntryStatus
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.manifests.reader import read_manifest_columns
from icecomb.format.operation.conflict import index_key
from icecomb.format.rows.deletes.position_delete import PositionDeletes
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import LINEAGE, ROW_POSITION
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.scan.change_scan import Lineage
from icecomb.format.scan.delete_index import DeleteFileIndex
from icecomb.format.scan.scan_planner import ScanPlanner
from icecomb.format.scan.snapshot_changes import reached_files
from icecomb.format.spec.metadata import existing_snapshot
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import Operation, ancestors_of
from icecomb.spark.planner.files import position_delete_files
from icecomb.spark.planner.table.change_columns import (
    CHANGELOGS,
    CHANGES,
    CHANGES_FROM,
    KINDS_OF_CHANGES_FROM,
    UPDATED_ROWS,
)
from icecomb.spark.values import value_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from icecomb.format.manifests.manifest import DataFile, FileIdentity, ManifestFile
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.spark.planner.table.states import TableState


_OF_UPDATES: Final = {"DELETE": "UPDATE_PREIMAGE", "INSERT": "UPDATE_POSTIMAGE"}
_Entry: TypeAlias = tuple[str, int | None, tuple[Any, ...]]
"""What tells apart the entries of a data file that a table has more than once: its path, the number
of the commit and the partition. Entries that are alike in these have the same deletes."""
_OF_ONE_STATE: Final = ("snapshot-id", "as-of-timestamp", "branch", "tag")


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of rows of a file.

    Args:
        kind: ``INSERT``, ``DELETE``, ``UPDATE_PREIMAGE`` or ``UPDATE_POSTIMAGE``.
        ordinal: The index of the commit in the changelog.
        rows: The positions of the rows; None for all live rows of the file.
    """

    file: DataFile
    kind: str
    ordinal: int
    snapshot: Snapshot
    rows: npt.NDArray[np.int64] | None

    def constants(self, changelog: str) -> dict[str, Any]:
        """Return the values of the own columns of one of `CHANGELOGS`, by field id as text."""
        values: tuple[Any, ...] = (self.kind, self.ordinal, self.snapshot.snapshot_id)
        if changelog != CHANGES:
            time_us = self.snapshot.timestamp_ms * 1000
            values = (self.kind.lower(), self.snapshot.snapshot_id, time_us)
        own = zip(CHANGELOGS[changelog], values, strict=True)
        return {str(f.field_id): value_to_json(f.field_type, value) for f, value in own}


class Changelog:
    """The changes of a table, in the commits that options with lower-case keys select."""

    def __init__(self, state: TableState, options: Mapping[str, str]) -> None:
        self.tasks: deque[FileScanTask] = deque()
        self.changes: dict[int, FileChange] = {}
        """Changes by the identity (`id`) of their files."""
        self._state = state
        self._deleted_rows = DeletedRows(state)
        kind = state.metadata_table
        self._comparison = None if kind in {CHANGES, CHANGES_FROM} else RowComparison(state)
        for ordinal, snapshot in enumerate(_commits(state, options)):
            known = len(self.tasks)
            self._add(ordinal, snapshot)
            if self._comparison and older_than_lineage(state.metadata, snapshot) is None:
                self._leave_out_moves(self._comparison, known)

    def _add(self, ordinal: int, snapshot: Snapshot) -> None:
        own = [
            manifest
            for manifest in read_manifests(self._state.io, snapshot)
            # a list of format version 1 may not say who added a manifest
            if manifest.added_snapshot_id in {None, snapshot.snapshot_id}
        ]
        data = [m for m in own if m.content is ManifestContent.DATA]
        added = self._planner(added_by=[snapshot.snapshot_id])
        _, deletes = added.live(snapshot)
        new: set[_Entry] = set()
        for task in added.plan_manifests(data, deletes):
            new.add(_entry(task))
            self._keep(task, "INSERT", ordinal, snapshot)
        removed = self._planner(removed_by=[snapshot.snapshot_id])
        if any(chosen.count for chosen in removed.selected(data, DeleteFileIndex())):
            parent = self._parent(snapshot)
            earlier = self._planner().live(parent)[1] if parent else DeleteFileIndex()
            for task in removed.plan_manifests(data, earlier):
                self._keep(task, "DELETE", ordinal, snapshot)
        if changed := self._changed_deletes(own, snapshot):
            self._add_partly(ordinal, snapshot, changed, new)

    def _add_partly(
        self, ordinal: int, snapshot: Snapshot, changed: set[FileIdentity], new: set[_Entry]
    ) -> None:
        """Add the changed rows of files that stay."""
        parent = self._parent(snapshot)
        now = self._reached(snapshot, changed)
        before = self._reached(parent, changed) if parent else {}
        entries = (now.keys() | before.keys()) - new
        now.update(self._live(snapshot, entries - now.keys()))
        if parent:
            before.update(self._live(parent, entries - before.keys()))
        stay = [entry for entry in now if entry in before and entry in entries]
        pairs = (pair for entry in stay for pair in zip(before[entry], now[entry], strict=True))
        for one, other in sorted(pairs, key=lambda pair: pair[0].file_path):
            was, is_now = self._deleted_rows.of(one), self._deleted_rows.of(other)
            for task, kind, rows in (
                (one, "DELETE", np.setdiff1d(is_now, was, assume_unique=True)),
                (other, "INSERT", np.setdiff1d(was, is_now, assume_unique=True)),
            ):
                if len(rows):
                    self._keep(task, kind, ordinal, snapshot, rows)

    def _keep(
        self,
        task: FileScanTask,
        kind: str,
        ordinal: int,
        snapshot: Snapshot,
        rows: npt.NDArray[np.int64] | None = None,
    ) -> None:
        # a file may be in a changelog more than once, each time as an object of its own
        file = replace(task.file)
        self.changes[id(file)] = FileChange(file, kind, ordinal, snapshot, rows)
        # the rows are known in this case: delete files need not be read again
        deletes = task.delete_files if rows is None else ()
        self.tasks.append(FileScanTask(file, deletes, task.residual, task.spec))

    def _leave_out_moves(self, comparison: RowComparison, first: int) -> None:
        """Leave out rows that a commit only moved; `first` is the index of the first task."""
        sides: dict[str, list[tuple[FileScanTask, FileChange]]] = {"DELETE": [], "INSERT": []}
        for task in islice(self.tasks, first, None):
            change = self.changes[id(task.file)]
            sides[change.kind].append((task, change))
        if not all(sides.values()):
            return
        for _ in range(len(self.tasks) - first):
            del self.changes[id(self.tasks.pop().file)]
        rows = ([(task, change.rows) for task, change in side] for side in sides.values())
        for side, compared in zip(sides.values(), comparison.compare(*rows), strict=True):
            for (task, change), one in zip(side, compared, strict=True):
                self._keep_compared(task, change, one)

    def _keep_compared(
        self, task: FileScanTask, change: FileChange, compared: ComparedRows
    ) -> None:
        kinds = {change.kind: np.union1d(compared.others, compared.updated)}
        if self._state.metadata_table == UPDATED_ROWS:
            kinds = {change.kind: compared.others, _OF_UPDATES[change.kind]: compared.updated}
        for kind, rows in kinds.items():
            if len(rows):
                chosen = change.rows if len(rows) == compared.count else rows
                self._keep(task, kind, change.ordinal, change.snapshot, chosen)

    def _planner(
        self, added_by: list[int] | None = None, removed_by: list[int] | None = None
    ) -> ScanPlanner:
        metadata = self._state.metadata
        return ScanPlanner(
            metadata,
            self._state.io,
            self._state.scan().schema(),
            AlwaysTrue(),
            added_by=added_by,
            removed_by=removed_by,
        )

    def _parent(self, snapshot: Snapshot) -> Snapshot | None:
        """Return the parent snapshot, which must not have expired; None for the first."""
        if snapshot.parent_snapshot_id is None:
            return None
        parent = self._state.metadata.snapshot_by_id(snapshot.parent_snapshot_id)
        if parent is None:
            raise NoSuchSnapshotError(
                f"What snapshot {snapshot.snapshot_id} changed in table {self._state.name} is not "
                "known any more: the one before it has expired",
                hint=f"Begin later: give {START}, or {START_TIME}.",
                table=self._state.name,
            )
        return parent

    def _live(self, snapshot: Snapshot, entries: set[_Entry]) -> dict[_Entry, list[FileScanTask]]:
        """Return files of a snapshot by entry, with the deletes that apply."""
        if not entries:
            return {}
        paths = {path for path, *_ in entries}
        tasks = self._planner().plan(snapshot)
        found = _by_entry(task for task in tasks if task.file_path in paths)
        return {entry: found[entry] for entry in entries & found.keys()}

    def _reached(
        self, snapshot: Snapshot, changed: Collection[FileIdentity]
    ) -> dict[_Entry, list[FileScanTask]]:
        """Return files of a snapshot, by entry, that some of the delete files may apply to."""
        state = self._state
        return _by_entry(reached_files(state.io, state.metadata, snapshot, changed))

    def _changed_deletes(self, own: list[ManifestFile], snapshot: Snapshot) -> set[FileIdentity]:
        """Return the delete files that a commit added or removed."""
        return {
            identity
            for manifest in own
            if manifest.content is ManifestContent.DELETES
            for identity in self._changed(manifest, snapshot)
        }

    def _changed(self, manifest: ManifestFile, snapshot: Snapshot) -> list[FileIdentity]:
        spec = self._state.metadata.spec_by_id(manifest.partition_spec_id)
        columns = read_manifest_columns(self._state.io, manifest, (), spec=spec)
        own = pc.equal(columns.column("snapshot_id"), snapshot.snapshot_id)
        stays = pc.equal(columns.column("status"), ManifestEntryStatus.EXISTING.value)
        return columns.identities(pc.and_not(own, stays))


def _entry(task: FileScanTask) -> _Entry:
    return (task.file_path, task.file.sequence_number, index_key(task.file))


def _by_entry(tasks: Iterable[FileScanTask]) -> dict[_Entry, list[FileScanTask]]:
    found: dict[_Entry, list[FileScanTask]] = {}
    for task in tasks:
        found.setdefault(_entry(task), []).append(task)
    return found


def _commits(state: TableState, options: Mapping[str, str]) -> list[Snapshot]:
    named = [option for option in (*_OF_ONE_STATE, *RANGE_OPTIONS) if option in options]
    if state.metadata_table in KINDS_OF_CHANGES_FROM:
        if named:
            raise ValidationError(
                f"CHANGES FROM table {state.name} says which commits are meant, and so does the "
                f"option {named[0]}",
                hint="Leave the option out.",
                table=state.name,
            )
        ends = {START: state.changes_after, END: state.changes_until}
        options = {key: str(end) for key, end in ends.items() if end is not None}
    elif named and named[0] in _OF_ONE_STATE:
        raise ValidationError(
            f"Table {state.name}.changes is not of one state: option {named[0]}",
            hint="Give the first and the last commit: start-snapshot-id, end-snapshot-id.",
        )
    return changed_snapshots(state.metadata, options)


@dataclass(frozen=True, slots=True)
class ComparedRows:
    """The rows that a commit deleted from a file, or inserted, without those it only moved.

    Args:
        count: The number of rows, moved ones included.
        others: The positions of the rows that the commit's other side lacks, ascending.
        updated: The positions of those that it has with other values, ascending.
    """

    count: int
    others: npt.NDArray[np.int64]
    updated: npt.NDArray[np.int64]


class RowComparison:
    """Comparison of the rows that a commit deleted with those that it inserted.

    Their ids are read by the planner, and those of one commit are in memory at once.
    """

    def __init__(self, state: TableState) -> None:
        self._location = state.metadata.location
        columns = Schema((ROW_POSITION, *LINEAGE))
        self._scan = ArrowScan(state.metadata, state.io, columns, workers=1)

    def compare(
        self, *sides: Sequence[tuple[FileScanTask, npt.NDArray[np.int64] | None]]
    ) -> Iterator[list[ComparedRows]]:
        """Compare the rows of both sides, and yield those of each side's files, in order.

        Args:
            sides: The files with deleted rows, and those with inserted ones: each with the
                positions of these rows, or None for all live rows.
        """
        read = [[self._read(*file) for file in side] for side in sides]
        joined = [np.concatenate(files, axis=1) for files in read]
        known = [Lineage.of(ids, updates, self._location) for _, ids, updates in joined]
        for files, (positions, ids, updates), other in zip(read, joined, known[::-1], strict=True):
            counts = [files_rows.shape[1] for files_rows in files]
            ends = np.cumsum(counts)
            parts = [
                [positions[rows] for rows in np.split(kind, np.searchsorted(kind, ends[:-1]))]
                for kind in other.changes(ids, updates)
            ]
            yield [ComparedRows(*one) for one in zip(counts, *parts, strict=True)]

    def _read(
        self, task: FileScanTask, rows: npt.NDArray[np.int64] | None
    ) -> npt.NDArray[np.int64]:
        """Return positions, ids and numbers of the last updates of rows, one array each."""
        found = [np.empty((3, 0), np.int64)]
        for batch in self._scan.read(task):
            check_wanted()
            if batch.column(1).null_count:
                raise UnsupportedError(
                    f"Rows of {task.file_path} have no ids: it is older than the upgrade of the "
                    f"table at {self._location} to format version 3",
                    hint="Begin later, or give deduplicationMode = 'none' without computeUpdates.",
                    path=task.file_path,
                )
            read = np.stack([numbers_of(column) for column in batch.columns])
            found.append(read if rows is None else read[:, np.isin(read[0], rows)])
        return np.concatenate(found, axis=1)


def stated_rows(file: DataFile) -> int:
    """Return the row count of a data file according to its manifest."""
    if file.record_count < 0:
        raise UnsupportedError(
            f"The changes of data file {file.file_path} cannot be read: "
            f"its manifest says that it has {file.record_count} rows",
            hint="Rewrite it with rewrite_data_files; changes after that can be read.",
            path=file.file_path,
        )
    return file.record_count


class DeletedRows:
    """The deleted rows of data files; with equality deletes, compared columns are read."""

    def __init__(self, state: TableState) -> None:
        self._positions = PositionDeletes(state.io)
        self._scan = ArrowScan(state.metadata, state.io, Schema(ROW_POSITION), workers=1)

    def of(self, task: FileScanTask) -> npt.NDArray[np.int64]:
        """Return the distinct positions of a whole file's deleted rows, ascending."""
        check_wanted()
        by_position = position_delete_files(task)
        if len(by_position) == len(task.delete_files):
            found = self._positions.of(task.file, by_position) if by_position else None
            return np.empty(0, np.int64) if found is None else found
        deleted = np.ones(stated_rows(task.file), np.bool_)
        for batch in self._scan.read(task):
            deleted[np.asarray(batch.column(0))] = False
        return np.flatnonzero(deleted)


START: Final = "start-snapshot-id"
END: Final = "end-snapshot-id"
START_TIME: Final = "start-timestamp"
END_TIME: Final = "end-timestamp"
RANGE_OPTIONS: Final = (START, END, START_TIME, END_TIME)
"""The options that select snapshots; others are ignored."""


def changed_snapshots(metadata: TableMetadata, options: Mapping[str, str]) -> list[Snapshot]:
    """Return the selected snapshots, oldest first, but `replace` ones: they change no rows."""
    given = {key: _whole(key, options[key]) for key in RANGE_OPTIONS if key in options}
    for one, other in ((START, START_TIME), (END, END_TIME)):
        if one in given and other in given:
            raise ValidationError(
                f"{one} and {other} are both given", hint="Give at most one of them."
            )
    if START_TIME in given and END_TIME in given and given[START_TIME] >= given[END_TIME]:
        raise ValidationError(
            f"Cannot set {START_TIME} to be greater than {END_TIME} for changelogs, or the same: "
            f"{given[START_TIME]}, {given[END_TIME]}",
            hint="Give the earlier time first.",
        )
    for key in (START, END):
        if key in given:
            existing_snapshot(metadata, given[key], f"{key}: the table has")
    line = list(ancestors_of(metadata, given.get(END, metadata.current_snapshot_id)))
    if END_TIME in given:
        line = [s for s in line if s.timestamp_ms <= given[END_TIME]]
    if START_TIME in given:
        line = [s for s in line if s.timestamp_ms > given[START_TIME]]
    if START in given:
        ids = [snapshot.snapshot_id for snapshot in line]
        if given[START] not in ids:
            raise ValidationError(
                f"{START} {given[START]} is not an ancestor of the end",
                hint="Give an ancestor of the end: see ancestors_of.",
            )
        line = line[: ids.index(given[START])]
    return [s for s in reversed(line) if s.operation != Operation.REPLACE]


def older_than_lineage(metadata: TableMetadata, snapshot: Snapshot) -> Snapshot | None:
    """Return the commit or its parent, if rows of it have no ids; None if all rows have."""
    parent = metadata.snapshot_by_id(snapshot.parent_snapshot_id or -1)
    return next((s for s in (parent, snapshot) if s is not None and s.first_row_id is None), None)


def _whole(key: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,19}", text):
        raise ValidationError(f"{key} must be an integer, not {text!r}", hint="Give it as digits.")
    return int(text)
