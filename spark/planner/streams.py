"""The protocol's methods for streams that follow a table: offsets and plans of batches.

A batch is defined by two offsets, which Spark stores in its checkpoint before it runs the batch.
The files between them never change, so that a batch that is run again reads the same rows.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np

from icecomb.format.errors import (
    NoSuchSnapshotError,
    SchemaError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.expressions.expression import AlwaysTrue
from icecomb.format.input_limit import bounded_json
from icecomb.format.lru import Lru
from icecomb.format.manifests.manifest import ManifestContent
from icecomb.format.manifests.manifest_list import read_manifests
from icecomb.format.property.property import flag, optional_number
from icecomb.format.scan.delete_index import DeleteFileIndex
from icecomb.format.scan.scan_planner import ScanPlanner
from icecomb.format.spec.schema import Schema, children, prune, walk
from icecomb.format.spec.snapshot import MAIN_BRANCH, Operation, Snapshot, ancestors_of
from icecomb.spark.planner.protocol.scans import ScanPage, ScanPlan
from icecomb.spark.planner.protocol.streams import (
    LatestOffset,
    OpenedStream,
    OpenStream,
    PlanStream,
    StreamEnd,
    StreamPosition,
    StreamTable,
)
from icecomb.spark.planner.scan.read_options import ReadOptions
from icecomb.spark.planner.scan.scan import ScanMetrics, scan_plan
from icecomb.spark.planner.table.change_columns import KINDS_OF_CHANGES_FROM

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping

    import numpy.typing as npt

    from icecomb.format.manifests.manifest import ManifestFile
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.spark.planner.table.states import TableState, TableStates


_KEPT: Final = 32
"""The number of snapshots whose files' row counts are cached: a query polls often."""


class Streams:
    """Streams of tables, whose state is entirely in their requests."""

    def __init__(self, states: TableStates) -> None:
        self._states = states
        self._recent = Lru[tuple[tuple[str, ...], int, bool], "npt.NDArray[np.int64]"](_KEPT)

    def open_stream(self, request: OpenStream) -> OpenedStream:
        selection = request.scan.selection
        state = self._states.find(selection.reference)
        options = StreamOptions(state.name, selection.options)
        branch = options.branch(state)
        now = self._states.current(state.catalog, state.identifier)
        history = StreamHistory(state.name, now.metadata, branch)
        if request.initial is None:
            initial = history.beginning(options.from_timestamp)
        else:
            initial = StreamOffset.parse(request.initial)
        read = ReadOptions.of_selection(selection)
        properties = state.metadata.properties
        return OpenedStream(
            stream=StreamTable(
                catalog=state.catalog,
                identifier=state.identifier,
                uuid=str(state.metadata.table_uuid),
                schema=_columns(state.schema, request.scan.field_ids).to_json(),
                options=selection.options,
                branch=branch,
            ),
            initial=initial.text(),
            max_files=options.max_files,
            max_rows=options.max_rows,
            vectorized=read.is_vectorized(properties),
            batch_rows=read.batch_rows(properties),
        )

    def stream_end(self, request: StreamEnd) -> StreamPosition:
        state = self._now(request.stream)
        head = StreamHistory(state.name, state.metadata, request.stream.branch).head(None)
        end = BEFORE_ALL if head is None else StreamOffset(head.snapshot_id, 0)
        return StreamPosition(end.text())

    def latest_offset(self, request: LatestOffset) -> StreamPosition:
        state = self._now(request.stream)
        options = StreamOptions(state.name, request.stream.options)
        history = StreamHistory(state.name, state.metadata, request.stream.branch)
        until = None if request.until is None else StreamOffset.parse(request.until)
        head = history.head(until)
        if head is None:
            return StreamPosition(None)
        asked = start = StreamOffset.parse(request.start)
        if start == BEFORE_ALL:
            start = history.before(head.snapshot_id, options.from_timestamp)
        if start == BEFORE_ALL:
            return StreamPosition(None)
        end, batch = start, _Batch(request.max_files, request.max_rows)
        for snapshot in history.between(start.snapshot_id, head.snapshot_id):
            at = _within(snapshot, start)
            left = self._rows(state, snapshot, everything=at.scan_all_files)[at.position :]
            taken = len(left)
            if _is_read(options, snapshot, at, start, taken):
                taken = batch.take(left)
            end = replace(at, position=at.position + taken)
            if taken < len(left):
                break
        return StreamPosition(None if end == asked else end.text())

    def plan_stream(self, request: PlanStream) -> Generator[ScanPage, None, ScanPlan]:
        state = self._now(request.stream)
        options = StreamOptions(state.name, request.stream.options)
        history = StreamHistory(state.name, state.metadata, request.stream.branch)
        start, end = StreamOffset.parse(request.start), StreamOffset.parse(request.end)
        tasks: deque[FileScanTask] = deque()
        if end != BEFORE_ALL:
            if start == BEFORE_ALL:
                start = history.before(end.snapshot_id, options.from_timestamp)
            for snapshot in history.between(start.snapshot_id, end.snapshot_id):
                at = _within(snapshot, start)
                stop = end.position if snapshot.snapshot_id == end.snapshot_id else None
                files = SnapshotFiles(state, snapshot, everything=at.scan_all_files)
                found = files.tasks(at.position, stop)
                if _is_read(options, snapshot, at, start, len(found)):
                    tasks += found
        return (yield from scan_plan(state, tasks, request.scan, ScanMetrics()))

    def _now(self, stream: StreamTable) -> TableState:
        """Load the current state of the stream's table, which must be the same one."""
        state = self._states.current(stream.catalog, stream.identifier)
        if str(state.metadata.table_uuid) != stream.uuid:
            raise UnsupportedError(
                f"Table {state.name} was dropped and re-created while a query followed it",
                hint="Start the query again, with a new checkpoint.",
                table=state.name,
            )
        _check_types(state, Schema.from_json(stream.schema))
        return state

    def _rows(
        self, state: TableState, snapshot: Snapshot, *, everything: bool
    ) -> npt.NDArray[np.int64]:
        # another table may have the uuid, and snapshots of these ids
        table = (state.catalog, *state.identifier, str(state.metadata.table_uuid))
        key = table, snapshot.snapshot_id, everything
        found = self._recent.find(key)
        if found is None:
            found = SnapshotFiles(state, snapshot, everything=everything).rows()
            self._recent.keep(key, found)
        return found


class _Batch:
    """The remaining capacity of a batch.

    Args:
        files: The most files; None for no limit.
        rows: The number of rows with which the batch is full; None for no limit.
    """

    def __init__(self, files: int | None, rows: int | None) -> None:
        self._files = files
        self._rows = rows

    def take(self, counts: npt.NDArray[np.int64]) -> int:
        """Take as many files as fit, including the one that fills it, as in Iceberg Java.

        Args:
            counts: The row counts of the files.
        """
        fitting = len(counts) if self._files is None else min(len(counts), self._files)
        if self._rows is not None:
            # the first file with which the sum of rows reaches the limit
            full = int(np.searchsorted(np.cumsum(counts), self._rows)) + 1
            fitting = min(fitting, full) if self._rows > 0 else 0
            self._rows -= int(counts[:fitting].sum())
        if self._files is not None:
            self._files -= fitting
        return fitting


def _within(snapshot: Snapshot, start: StreamOffset) -> StreamOffset:
    """Return the offset at which a batch begins within one of its snapshots."""
    begins = snapshot.snapshot_id == start.snapshot_id
    return start if begins else StreamOffset(snapshot.snapshot_id, 0)


def _is_read(
    options: StreamOptions, snapshot: Snapshot, at: StreamOffset, start: StreamOffset, files: int
) -> bool:
    """Return whether a batch reads the remaining files of a snapshot."""
    if at is start and not files:
        return False  # an earlier batch has already processed it
    return at.scan_all_files or options.reads(snapshot)


def _columns(schema: Schema, field_ids: Iterable[int]) -> Schema:
    return prune(schema, {i for i in field_ids if schema.contains(i)})


def _check_types(state: TableState, read: Schema) -> None:
    """Refuse columns whose type has changed since the query started."""
    now = state.metadata.schema()
    for field in walk(read.as_struct()):
        if children(field.field_type) or not now.contains(field.field_id):
            continue
        found = now.find_type(field.field_id)
        if found != field.field_type:
            raise SchemaError(
                f"Column {now.find_column_name(field.field_id)} of table {state.name} was "
                f"{field.field_type} when the query started and is {found} now",
                hint="Start the query again: it goes on from its checkpoint.",
                table=state.name,
            )


class SnapshotFiles:
    """The files that a snapshot added, or, with `everything`, all its files.

    They are in the order of its manifest list and of the entries in each manifest, by which the
    position in Iceberg Java's offsets is counted (``MicroBatches``). Deletes apply to all its
    files, as in any scan of that snapshot; files added by an append have none.
    """

    def __init__(self, state: TableState, snapshot: Snapshot, *, everything: bool) -> None:
        added = None if everything else [snapshot.snapshot_id]
        self._planner = ScanPlanner(
            state.metadata, state.io, state.metadata.schema(), AlwaysTrue(), added_by=added
        )
        self._everything = everything
        self._state = state
        self._snapshot = snapshot

    def rows(self) -> npt.NDArray[np.int64]:
        """Return the row count of each file."""
        manifests, _ = self._manifests()
        selected = self._planner.selected(manifests, DeleteFileIndex())
        counts = [one.column("record_count").to_numpy(zero_copy_only=False) for one in selected]
        return np.concatenate([np.zeros(0, np.int64), *counts]).astype(np.int64)

    def tasks(self, start: int, end: int | None) -> Sequence[FileScanTask]:
        """Return tasks of the whole files from a position to before another, None for all."""
        manifests, deletes = self._manifests()
        return list(islice(self._planner.plan_manifests(manifests, deletes), start, end))

    def _manifests(self) -> tuple[list[ManifestFile], DeleteFileIndex]:
        if self._everything:
            return self._planner.live(self._snapshot)
        # a list of format version 1 may not say who added a manifest
        by_it = {None, self._snapshot.snapshot_id}
        manifests = [
            manifest
            for manifest in read_manifests(self._state.io, self._snapshot)
            if manifest.content is ManifestContent.DATA
            and manifest.added_snapshot_id in by_it
            and manifest.has_added_files()
        ]
        return manifests, DeleteFileIndex()


_FROM: Final = optional_number(
    "stream-from-timestamp", "The earliest time of snapshots to read, in ms since 1970."
)
_MAX_FILES: Final = optional_number(
    "streaming-max-files-per-micro-batch", "The most files of a batch.", least=1
)
_MAX_ROWS: Final = optional_number(
    "streaming-max-rows-per-micro-batch", "The number of rows with which a batch is full.", least=1
)
_SKIP_DELETES: Final = flag(
    "streaming-skip-delete-snapshots", "Whether deletes are ignored.", default=False
)
_SKIP_OVERWRITES: Final = flag(
    "streaming-skip-overwrite-snapshots", "Whether overwrites are ignored.", default=False
)
_SKIPPING: Final = {
    Operation.DELETE.value: _SKIP_DELETES,
    Operation.OVERWRITE.value: _SKIP_OVERWRITES,
}
_BRANCH: Final = "branch"
_OF_BATCHES: Final = (
    "snapshot-id", "as-of-timestamp", "tag", "start-snapshot-id", "end-snapshot-id",
    "start-timestamp", "end-timestamp", "versionasof", "timestampasof",
)  # fmt: skip


class StreamOptions:
    """The options of one stream; Iceberg's ``async-…`` is ignored: it does not affect rows."""

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._name = name
        self._options = {key.lower(): text for key, text in options.items()}
        self.from_timestamp = _FROM.of(self._options)
        self.max_files = _MAX_FILES.of(self._options)
        self.max_rows = _MAX_ROWS.of(self._options)
        self._skipped = {kind for kind, skip in _SKIPPING.items() if skip.of(self._options)}

    def branch(self, state: TableState) -> str:
        """Return the branch that the stream follows."""
        chosen = next((option for option in _OF_BATCHES if option in self._options), None)
        named = self._options.get(_BRANCH)
        if chosen is not None:
            asked = f"the option {chosen}"
        elif state.metadata_table in KINDS_OF_CHANGES_FROM:
            asked = "the changes of one"
        elif state.metadata_table is not None:
            asked = f"its table {state.metadata_table}"
        elif state.time_travel:
            asked = "one of its versions"
        elif state.ref is not None and named is None:
            asked = f"branch {state.ref} of spark.wap.branch"
        elif state.branch is not None and named not in {None, state.branch}:
            raise ValidationError(
                f"The option {_BRANCH}={named} contradicts the name of table {self._name}, which "
                f"says branch {state.branch}",
                hint="Leave one of them out.",
                table=self._name,
            )
        else:
            return named or state.branch or MAIN_BRANCH
        raise UnsupportedError(
            f"A stream reads what is appended to a branch of table {self._name}, not {asked}",
            hint="Name the table itself, a branch below it or the option branch, and leave the "
            "others out, also spark.wap.branch; stream-from-timestamp says where to begin.",
            table=self._name,
        )

    def reads(self, snapshot: Snapshot) -> bool:
        """Return whether a stream reads the files of a snapshot: those of appends.

        `ValidationError` if it changed existing rows, and options do not skip it.
        """
        operation = snapshot.operation
        if operation == Operation.APPEND:
            return True
        if operation == Operation.REPLACE or operation in self._skipped:
            return False
        skip = _SKIPPING.get(operation or "")
        raise ValidationError(
            f"Table {self._name}: snapshot {snapshot.snapshot_id} is of operation {operation}, "
            "and a stream has only rows that were appended",
            hint="Start the query with a new checkpoint, after that snapshot."
            if skip is None
            else f"Set the option {skip.key} to true to skip such snapshots.",
            table=self._name,
            snapshot_id=snapshot.snapshot_id,
        )


_AFRESH = (
    "start the query with a new checkpoint: it then reads all rows of the table, "
    "or those appended since the option stream-from-timestamp"
)


class StreamHistory:
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
                hint=f"Its branches: {', '.join(names) or MAIN_BRANCH}; one that was dropped is "
                f"followed again if its history has the query's last snapshot, otherwise "
                f"{_AFRESH}.",
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
                hint=f"Set stream-from-timestamp to {first.timestamp_ms + 1} or later; without it "
                "a new query begins with all rows of the oldest snapshot.",
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
                hint=f"Restore a history of {self._branch} with that snapshot, or {_AFRESH}.",
                table=self._name,
                snapshot_id=start,
            )
        lost = start if not known or oldest is None else oldest.parent_snapshot_id
        return NoSuchSnapshotError(
            f"The stream is at snapshot {start} of table {self._name}, and snapshot {lost} "
            "is not there any more: it expired, or the table was re-created",
            hint=f"{_AFRESH}; keep snapshots (history.expire.max-snapshot-age-ms) for longer than "
            "the query is ever stopped.",
            table=self._name,
            snapshot_id=lost,
        )


_VERSION: Final = 1
_NOWHERE: Final = -1


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """A position in the table's history: a snapshot and a number of its files.

    Source: ``org.apache.iceberg.spark.source.StreamingOffset``.

    Args:
        position: The number of its files before this offset, in the order of its manifests.
        scan_all_files: Whether all its files count, not only those that it added.
    """

    snapshot_id: int
    position: int
    scan_all_files: bool = False

    @classmethod
    def parse(cls, text: str) -> StreamOffset:
        """Parse an offset of an Iceberg table."""
        try:
            raw = bounded_json(text)
            version = raw["version"]
            fields = raw["snapshot_id"], raw["position"], raw["scan_all_files"]
        except (ValueError, KeyError, TypeError):
            version = None
        if version != _VERSION or tuple(map(type, fields)) != (int, int, bool):
            raise ValidationError(
                f"The checkpoint has an offset that is not of an Iceberg table: {text!r}",
                hint="Start the query with the checkpoint that it had, or with a new, empty one.",
            )
        return cls(*fields)

    def text(self) -> str:
        """Return the offset as text."""
        members = {
            "version": _VERSION,
            "snapshot_id": self.snapshot_id,
            "position": self.position,
            "scan_all_files": self.scan_all_files,
        }
        return json.dumps(members, separators=(",", ":"))


BEFORE_ALL: Final = StreamOffset(_NOWHERE, _NOWHERE)
"""The offset of a stream that began when the table had no snapshot to read."""
