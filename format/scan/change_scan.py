"""Changes between two snapshots, found by the ids of rows instead of by comparing rows.

A row that a commit only moves to another file keeps its id and the number of the commit that
updated it last (spec: Row Lineage). So files that both snapshots have with the same deletes are not
read, and of the others only these two columns decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icecomb.format.arrow.number_view import numbers_of
from icecomb.format.errors import (
    CorruptFileError,
    UnsupportedError,
    ValidationError,
)
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import LINEAGE, metadata_column
from icecomb.format.scan.table_scan import TableScan
from icecomb.format.spec.metadata import existing_snapshot
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.snapshot import is_ancestor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.storage.file_io import FileIO

_Numbers: TypeAlias = npt.NDArray[np.int64]

CHANGE_TYPE: Final = "_change_type"
"""The column that says what happened to a row, in the words of Iceberg Java's changelogs."""
_TYPES: Final = pa.array(["DELETE", "UPDATE_BEFORE", "INSERT", "UPDATE_AFTER"])


@dataclass(frozen=True, slots=True)
class Lineage:
    """The ids of rows, ascending, and the number of the commit that updated each last."""

    ids: _Numbers
    updates: _Numbers

    @classmethod
    def of(cls, ids: _Numbers, updates: _Numbers, location: str) -> Lineage:
        """Sort the ids of rows, with the number of the commit that last updated each."""
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        if (again := np.flatnonzero(np.diff(ids) == 0)).size:
            raise CorruptFileError(
                f"Several rows of the table at {location} have the id {int(ids[again[0]])}",
                hint="A writer gave an id twice: compare the rows of both snapshots instead.",
                path=location,
            )
        return cls(ids, updates[order])

    def changes(self, ids: _Numbers, updates: _Numbers) -> tuple[_Numbers, _Numbers]:
        """Return which of other rows are not among these, and which are with other values."""
        if not len(self.ids):
            return np.arange(len(ids)), np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        there = self.ids[at] == ids
        return np.flatnonzero(~there), np.flatnonzero(there & (self.updates[at] != updates))


@dataclass(frozen=True)
class ChangeScan:
    """A scan of the rows that were inserted, updated or deleted between two snapshots.

    Only the outcome counts: a row that was inserted and deleted between them is not among the
    rows, and one that was updated twice is once. An updated row is there as it was before
    (`UPDATE_BEFORE`) and as it is after (`UPDATE_AFTER`), others once (`INSERT`, `DELETE`). The ids
    of the rows in files that only one of the snapshots has are held in memory.

    Args:
        metadata: Metadata of the table.
        io: File system that holds the table.
        from_snapshot_id: Id of the earlier snapshot; by default none, so that all rows are inserts.
        to_snapshot_id: Id of the later snapshot; the current one by default.
        selected_fields: Names of the columns; `"*"` for all.

    Raises:
        NoSuchSnapshotError: If one of the snapshots does not exist.
        UnsupportedError: If the table has no row lineage, or a snapshot is older than it.
        ValidationError: If the later snapshot does not descend from the earlier one.
    """

    metadata: TableMetadata
    io: FileIO
    from_snapshot_id: int | None = None
    to_snapshot_id: int | None = None
    selected_fields: tuple[str, ...] = ("*",)

    def __post_init__(self) -> None:
        names = self.selected_fields
        if isinstance(names, str):
            object.__setattr__(self, "selected_fields", (names,))
        for column in LINEAGE:
            metadata_column(column.name, self.metadata)
        start, end = self.from_snapshot_id, self._end()
        for number in (start, end):
            if number is not None:
                self._check(number)
        if start is not None and not is_ancestor(self.metadata, start, end):
            raise ValidationError(
                f"Snapshot {start} is not an ancestor of {end}",
                hint="Give snapshots of one branch, the older one first.",
                snapshot_id=start,
            )

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result: the columns, and `_change_type`."""
        reader = ArrowScan(self.metadata, self.io, self._scan(self._end()).projection())
        return reader.schema.append(pa.field(CHANGE_TYPE, pa.string(), nullable=False))

    def to_arrow(self) -> pa.Table:
        """Return the changes as one Arrow table: those before, then those after.

        Raises:
            CorruptFileError: If two rows of a snapshot have one id.
        """
        return pa.Table.from_batches(list(self._batches()), self.schema)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Return the changes as a stream of Arrow batches; see `to_arrow`."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _check(self, snapshot_id: int) -> None:
        found = existing_snapshot(self.metadata, snapshot_id)
        if found.first_row_id is None:
            raise UnsupportedError(
                f"Rows of snapshot {snapshot_id} have no ids: it is older than the table's upgrade "
                "to format version 3",
                hint="Choose later snapshots, or compare the rows of both.",
                snapshot_id=snapshot_id,
            )

    def _end(self) -> int | None:
        if self.to_snapshot_id is not None:
            return self.to_snapshot_id
        return self.metadata.current_snapshot_id

    def _scan(self, snapshot_id: int | None) -> TableScan:
        return TableScan(
            self.metadata, self.io, selected_fields=self.selected_fields, snapshot_id=snapshot_id
        )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        end, start = self._end(), self.from_snapshot_id
        before = {} if start is None else self._tasks(start)
        after = {} if end is None else self._tasks(end)
        old = [task for key, task in before.items() if key not in after]
        new = [task for key, task in after.items() if key not in before]
        was, now = self._lineage(old), self._lineage(new)
        yield from self._changed(old, now, 0)
        yield from self._changed(new, was, 2)

    def _tasks(self, snapshot_id: int) -> dict[Any, FileScanTask]:
        """Return the files of a snapshot by what tells them and their rows from others."""
        return {
            (
                task.file_path,
                task.file.first_row_id,
                frozenset(file.identity for file in task.delete_files),
            ): task
            for task in self._scan(snapshot_id).plan_files()
        }

    def _lineage(self, tasks: Iterable[FileScanTask]) -> Lineage:
        reader = self._reader(Schema(LINEAGE))
        ids, updates = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for batch in reader.to_record_batches(tasks):
            ids.append(numbers_of(batch.column(0)))
            updates.append(numbers_of(batch.column(1)))
        return Lineage.of(np.concatenate(ids), np.concatenate(updates), self.metadata.location)

    def _changed(
        self, tasks: Iterable[FileScanTask], other: Lineage, first: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one side that the other lacks, or has with other values.

        Rows that it lacks have the type with index `first`, others the next one.
        """
        schema = self.schema
        wanted = self._scan(self._end()).projection().fields
        reader = self._reader(Schema((*(f for f in wanted if f not in LINEAGE), *LINEAGE)))
        for batch in reader.to_record_batches(tasks):
            count = batch.num_columns
            ids, updates = (numbers_of(batch.column(at)) for at in (count - 2, count - 1))
            missing, unlike = other.changes(ids, updates)
            for rows, kind in ((missing, first), (unlike, first + 1)):
                if len(rows):
                    chosen = batch.take(pa.array(rows))
                    kinds = _TYPES.take(pa.array(np.full(len(rows), kind)))
                    columns = [chosen.column(f.name) for f in wanted]
                    yield pa.RecordBatch.from_arrays([*columns, kinds], schema=schema)

    def _reader(self, projected: Schema) -> ArrowScan:
        schema = self._scan(self._end()).schema()
        return ArrowScan(self.metadata, self.io, projected, schema=schema)
