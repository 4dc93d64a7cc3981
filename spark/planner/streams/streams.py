"""The protocol's methods for streams that follow a table: offsets and plans of batches.

A batch is defined by two offsets, which Spark stores in its checkpoint before it runs the batch.
The files between them never change, so that a batch that is run again reads the same rows.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from icecomb.format.errors import SchemaError, UnsupportedError
from icecomb.format.lru import Lru
from icecomb.format.spec.schema import Schema, children, prune, walk
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
from icecomb.spark.planner.scan.scan import scan_plan
from icecomb.spark.planner.scan.scan_metrics import ScanMetrics
from icecomb.spark.planner.streams.files import SnapshotFiles
from icecomb.spark.planner.streams.history import History
from icecomb.spark.planner.streams.offset import BEFORE_ALL, StreamOffset
from icecomb.spark.planner.streams.options import StreamOptions

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    import numpy.typing as npt

    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.snapshot import Snapshot
    from icecomb.spark.planner.table.states import TableState, TableStates

_KEPT: Final = 32
"""The number of snapshots whose files' row counts are cached: a query polls often."""


class Streams:
    """Streams of tables, whose state is entirely in their requests."""

    def __init__(self, states: TableStates) -> None:
        self._states = states
        self._recent = Lru[tuple[str, int, bool], "npt.NDArray[np.int64]"](_KEPT)

    def open_stream(self, request: OpenStream) -> OpenedStream:
        selection = request.scan.selection
        state = self._states.find(selection.reference)
        options = StreamOptions(state.name, selection.options)
        branch = options.branch(state)
        now = self._states.current(state.catalog, state.identifier)
        history = History(state.name, now.metadata, branch)
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
        """Answer `StreamEnd`."""
        state = self._now(request.stream)
        head = History(state.name, state.metadata, request.stream.branch).head(None)
        end = BEFORE_ALL if head is None else StreamOffset(head.snapshot_id, 0)
        return StreamPosition(end.text())

    def latest_offset(self, request: LatestOffset) -> StreamPosition:
        state = self._now(request.stream)
        options = StreamOptions(state.name, request.stream.options)
        history = History(state.name, state.metadata, request.stream.branch)
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
        history = History(state.name, state.metadata, request.stream.branch)
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
                hint="start the query again, with a new checkpoint",
                table=state.name,
            )
        _check_types(state, Schema.from_json(stream.schema))
        return state

    def _rows(
        self, state: TableState, snapshot: Snapshot, *, everything: bool
    ) -> npt.NDArray[np.int64]:
        key = (str(state.metadata.table_uuid), snapshot.snapshot_id, everything)
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
                hint="start the query again: it goes on from its checkpoint",
                table=state.name,
            )
