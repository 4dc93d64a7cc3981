"""Changes that remove rows from the data files of a table and add new rows.

`CopyOnWrite` rewrites a file without the rows; `MergeOnRead` leaves it as it is and writes the
positions of deleted rows. Memory is bounded whatever the size of the table. If anything fails,
every file of the attempt is removed.
"""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from icecomb.format.arrow.batch_stream import filtered
from icecomb.format.arrow.number_view import mask_of, numbers_of
from icecomb.format.errors import ValidationError
from icecomb.format.expressions.bound import bound_references
from icecomb.format.expressions.expression import AlwaysTrue, BooleanExpression
from icecomb.format.operation.conflict import index_key
from icecomb.format.operation.overwrite import (
    OverwriteFiles,
    ReplacePartitions,
    has_other_specs,
    partition_rows,
)
from icecomb.format.operation.position_rule import shared_files
from icecomb.format.operation.row_delta import RowDelta
from icecomb.format.operation.snapshot_producer import parent_manifests
from icecomb.format.property.table_property import DELETE_GRANULARITY
from icecomb.format.row_changes.write_target import NoChange, WriteTarget, WrittenChange
from icecomb.format.rows.deletes.deletion_vector import decode_vector, encode_vector
from icecomb.format.rows.deletes.deletion_vector_writer import (
    OlderDeletes,
    delete_writer,
    replaced_by,
)
from icecomb.format.rows.deletes.position_delete import Positions, distinct, live_mask, only_target
from icecomb.format.rows.read.arrow_scan import ArrowScan
from icecomb.format.rows.values.metadata_columns import (
    LINEAGE_IDS,
    ROW_ID,
    ROW_POSITION,
    lineage,
    with_lineage,
)
from icecomb.format.rows.values.scan_task import FileScanTask
from icecomb.format.rows.write.data_writer import DataWriter, write_data
from icecomb.format.spec.schema import Schema

if TYPE_CHECKING:
    from typing_extensions import Self

    from icecomb.format.arrow.batch_stream import GivenRows
    from icecomb.format.arrow.row_selection import RowNumbers
    from icecomb.format.manifests.manifest import DataFile, FileIdentity
    from icecomb.format.scan.delete_index import PartitionKey


class RowLevelChange(ABC):
    """The base class of both modes; a context manager that removes its files after an error.

    Args:
        command: The command whose properties apply: `delete` or `merge`.
    """

    def __init__(self, target: WriteTarget, command: str) -> None:
        self.target = target
        self.by_lineage = False
        self.serializable = target.is_serializable(command)
        self.operation_id = str(uuid.uuid4())
        self.removed: list[DataFile] = []
        self._relied_on: list[DataFile] = []
        self._left_alone: dict[FileIdentity, DataFile] = {}
        self._writer = DataWriter(target.io, target.metadata, self.operation_id)
        self._lineage = lineage(target.metadata)
        self._given: Sequence[DataFile] = ()
        self._moved: DataWriter | None = None
        self._without_ids = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if problem is not None:
            self.abort(problem)

    def drop(self, task: FileScanTask, *, whole_partition: bool = False) -> None:
        """Remove a data file with all its rows, and the delete files that apply to no other one.

        Args:
            whole_partition: Whether all data files of its partition are removed.
        """
        file = task.file
        self.removed.append(file)
        for deletes in task.delete_files:
            in_place = index_key(deletes) == index_key(file)
            if only_target(deletes) == file.file_path or (whole_partition and in_place):
                self._left_alone[deletes.identity] = deletes

    @abstractmethod
    def remove(self, task: FileScanTask, positions: Positions) -> None:
        """Remove rows of a data file by ascending positions, none of which is already deleted."""

    def rely_on(self, file: DataFile) -> None:
        """Note that rows are not added as a data file, which must not lose rows, has them."""
        if self.serializable:
            self._relied_on.append(file)

    def write_all(self, data: GivenRows) -> None:
        """Add new rows, whose columns are matched by name."""
        (self._moved or self._writer).write_all(data)

    def add_files(self, files: Sequence[DataFile]) -> None:
        """Add data files that are written already; after an error they are removed, too."""
        self._given = files

    def write_updated(self, rows: pa.Table, ids: RowNumbers | None) -> None:
        """Add new values of removed rows, which keep their ids.

        Args:
            ids: The ids of the removed rows, -1 where a row has none; None in a table without.
        """
        if not rows.num_rows:
            return
        if ids is None:
            self._without_ids = True
            self._writer.write_all(rows)
        else:
            column = pa.array(ids, mask=ids < 0)
            self._moved_rows(column).write_all(rows.append_column(ROW_ID.name, column))

    def _moved_rows(self, ids: pa.Array) -> DataWriter:
        """Return the writer of rows of other files; an id is null where a row has none."""
        self._without_ids = self._without_ids or bool(ids.null_count)
        if self._moved is None:
            target = self.target
            # a writer of its own, as files of new rows alone leave the columns out
            self._moved = DataWriter(target.io, target.metadata, self.operation_id, 1, moved=True)
        return self._moved

    def _close(self) -> list[DataFile]:
        """Finish the data files, and return them."""
        files = [*self._given, *self._writer.close()]
        return files if self._moved is None else [*files, *self._moved.close()]

    @abstractmethod
    def finish(self, rows: BooleanExpression) -> WrittenChange | NoChange:
        """Complete the files, and return the change to commit, or that there is none.

        Args:
            rows: The filter of the change: commits about other rows are not conflicts.
        """

    def abort(self, problem: BaseException) -> None:
        """Remove all written files."""
        self.target.io.delete([file.file_path for file in self._given])
        self._writer.abort(problem)
        if self._moved is not None:
            self._moved.abort(problem)

    def _removed_deletes(self) -> list[DataFile]:
        """Return the delete files that apply to removed data files only."""
        targets = {path for d in self._left_alone.values() if (path := only_target(d)) is not None}
        if not targets:
            return list(self._left_alone.values())
        target = self.target
        manifests = parent_manifests(target.io, target.metadata, target.snapshot())
        # of a file that several partitions have, one entry stays, and its deletes
        shared = shared_files(target.io, target.metadata, manifests, targets)
        return [d for d in self._left_alone.values() if only_target(d) not in shared]

    def _replacement(
        self, added: list[DataFile], rows: BooleanExpression
    ) -> WrittenChange | NoChange:
        """Return the change as removed and added data files."""
        target = self.target
        if not added and not self.removed:
            return NoChange(target, rows, self.serializable, self._relied_on, self.by_lineage)
        operation = OverwriteFiles(
            target.io,
            target.snapshot_properties,
            target.branch,
            case_sensitive=target.case_sensitive,
            schema=target.metadata.schema(),
        )
        operation.validate_from_snapshot(target.snapshot_id())
        add_replacement(
            operation,
            rows,
            added,
            self.removed,
            serializable=self.serializable,
            relied_on=self._relied_on,
            left_alone=self._removed_deletes(),
        )
        return WrittenChange(
            operation,
            target.written_with,
            added,
            data_files_removed=len(self.removed),
            without_ids=self._without_ids,
        )


class CopyOnWrite(RowLevelChange):
    """A change that rewrites files which lose rows, with the current schema and partitioning."""

    def __init__(self, target: WriteTarget, command: str) -> None:
        super().__init__(target, command)
        schema = target.metadata.schema()
        fields = (with_lineage(schema) if self._lineage else schema).fields
        self._columns = len(fields)
        io = target.io.to_copy()
        self._scan = ArrowScan(target.metadata, io, Schema((*fields, ROW_POSITION)), workers=1)

    def remove(self, task: FileScanTask, positions: Positions) -> None:
        if not len(positions):
            return
        self.drop(task)
        if len(positions) == task.file.record_count:
            return
        whole = FileScanTask(task.file, task.delete_files, spec=task.spec)
        for batch in self._scan.read(whole):
            kept = _without(batch, positions)
            if kept.num_rows:
                self._keep(kept.select(range(self._columns)))

    def _keep(self, rows: pa.RecordBatch) -> None:
        if self._lineage:
            self._moved_rows(rows.column(self._columns - len(self._lineage))).write(rows)
        else:
            self._without_ids = True
            self._writer.write(rows)

    def finish(self, rows: BooleanExpression) -> WrittenChange | NoChange:
        return self._replacement(self._close(), rows)


class MergeOnRead(RowLevelChange):
    """A change that keeps files which lose rows, and writes delete files for those rows.

    In format version 3 these are deletion vectors, which also stand for the older position deletes
    of their data file. In version 2, delete files for one data file each take the place of the
    older ones about that data file alone.
    """

    def __init__(self, target: WriteTarget, command: str, *, replaces_rows: bool = False) -> None:
        super().__init__(target, command)
        self._replaces_rows = replaces_rows
        if replaces_rows and self._lineage:
            with_lineage(target.metadata.schema())  # before rows are looked for
        self._deletes = delete_writer(target.io, target.metadata, self.operation_id)
        self._as_vectors = target.metadata.format_version >= 3
        by_file = DELETE_GRANULARITY.of(target.metadata.properties) == "file"
        self._older = OlderDeletes(target.io) if self._as_vectors or by_file else None
        self._held: dict[str, tuple[FileScanTask, bytes, int]] = {}
        self._replaced: list[DataFile] = []
        self._referenced: list[str] = []

    def remove(self, task: FileScanTask, positions: Positions) -> None:
        rows = task.file.record_count
        if len(positions) == rows:
            self.drop(task)
            return
        if self._older is not None:
            self._older.see(task)
        if not len(positions):
            return
        if self._older is not None and self._as_vectors:
            positions, replaced = self._older.joined(task, positions)
            # positions beyond the end, which a damaged delete file may have, delete nothing
            if rows == np.searchsorted(positions, rows):
                self.drop(task)
                return
            self._replaced += replaced
        elif self._older is not None:
            self._older.note(task)
            if replaced_by(task):
                # another entry of the file that comes later may have other deletes
                self._hold(task, positions)
                return
        self._add(task, positions)

    def _add(self, task: FileScanTask, positions: Positions) -> None:
        self._referenced.append(task.file.file_path)
        self._deletes.add(task.file, positions)

    def _hold(self, task: FileScanTask, positions: Positions) -> None:
        path = task.file.file_path
        if path in self._held:
            _, content, count = self._held[path]
            positions = distinct((decode_vector(content, count), positions))
        self._held[path] = task, encode_vector(positions), len(positions)

    def _add_held(self, older: OlderDeletes) -> None:
        """Write the deletes of data files that have delete files of their own with these."""
        for path, (task, content, count) in self._held.items():
            positions = decode_vector(content, count)
            if not older.differ(path):
                positions, replaced = older.joined(task, positions, own=True)
                self._replaced += replaced
            self._add(task, positions)

    def finish(self, rows: BooleanExpression) -> WrittenChange | NoChange:
        added = self._close()
        if self._older is not None:
            self._add_held(self._older)
        deletes = self._deletes.close()
        if not deletes:
            return self._replacement(added, rows)
        target = self.target
        operation = RowDelta(
            target.io,
            target.snapshot_properties,
            target.branch,
            case_sensitive=target.case_sensitive,
            schema=target.metadata.schema(),
        )
        operation.validate_from_snapshot(target.snapshot_id())
        add_deltas(
            operation,
            rows,
            added,
            deletes,
            self._referenced,
            replaces_rows=self._replaces_rows,
            serializable=self.serializable,
            by_lineage=self.by_lineage,
        )
        for file in (*self._replaced, *self._removed_deletes()):
            operation.remove_deletes(file)
        for file in self.removed:
            operation.remove_rows(file)
        gone = {file.file_path for file in self.removed}
        operation.validate_data_files_exist(
            file.file_path for file in self._relied_on if file.file_path not in gone
        )
        if self.removed:
            operation.validate_deleted_files()
        return WrittenChange(
            operation, target.written_with, added, deletes, len(self.removed), self._without_ids
        )

    def abort(self, problem: BaseException) -> None:
        super().abort(problem)
        self._deletes.abort()


def row_ids(column: pa.Array) -> RowNumbers:
    """Return values of `_row_id` as numbers, -1 for null."""
    return numbers_of(column.fill_null(-1) if column.null_count else column)


def row_level_change(
    target: WriteTarget, command: str, *, replaces_rows: bool = False
) -> RowLevelChange:
    """Begin a change in the mode of the table's `write.<command>.mode`.

    Args:
        replaces_rows: Whether rows are removed because new rows replace them.
    """
    if target.merges_on_read(command):
        return MergeOnRead(target, command, replaces_rows=replaces_rows)
    return CopyOnWrite(target, command)


def _without(batch: pa.RecordBatch, positions: Positions) -> pa.RecordBatch:
    """Return the rows of a batch whose position, the last column, is not among these."""
    own = numbers_of(batch.column(batch.num_columns - 1))
    first = int(own[0])
    mask = live_mask(positions, first, int(own[-1]) - first + 1)
    return batch if mask is None else filtered(batch, mask_of(mask[own - first]))


def add_deltas(
    operation: RowDelta,
    rows: BooleanExpression,
    added: Sequence[DataFile],
    deletes: Sequence[DataFile],
    referenced: Collection[str],
    *,
    replaces_rows: bool,
    serializable: bool,
    by_lineage: bool = False,
) -> None:
    """Add the files of a merge-on-read change, and its checks, to an operation.

    The operation knows its starting snapshot. Conflicts are those of Iceberg Java's writes from
    Spark: always that a file with deleted rows was rewritten; if rows are replaced, also that it
    was removed or that matching rows were deleted; if the change is serializable, also that
    matching rows were added.
    """
    operation.conflict_detection_filter(rows)
    for file in added:
        operation.add_rows(file)
    for file in deletes:
        operation.add_deletes(file)
    operation.validate_data_files_exist(referenced)
    if replaces_rows:
        operation.validate_deleted_files().validate_no_conflicting_delete_files()
    if serializable:
        operation.validate_no_conflicting_data_files()
    if by_lineage:
        operation.found_by_lineage()


def add_replacement(
    operation: OverwriteFiles,
    rows: BooleanExpression,
    added: Sequence[DataFile],
    removed: Sequence[DataFile],
    *,
    serializable: bool,
    relied_on: Sequence[DataFile] = (),
    left_alone: Sequence[DataFile] = (),
) -> None:
    """Add the files of a copy-on-write change, and its checks, to an operation.

    The operation knows its starting snapshot.

    Args:
        rows: The filter of the change: commits about other rows are not conflicts.
        serializable: Whether rows added by other writers are a conflict.
        relied_on: Other data files, which must not lose rows.
        left_alone: Delete files that apply to removed data files only.
    """
    operation.conflict_detection_filter(rows).validate_files_unchanged(relied_on)
    for file in removed:
        operation.delete_data_file(file)
    for file in left_alone:
        operation.remove_deletes(file)
    replace_by(operation, added, serializable=serializable)


def replace_by(
    operation: OverwriteFiles | ReplacePartitions,
    added: Sequence[DataFile],
    *,
    serializable: bool,
) -> None:
    """Add the new files and the checks to an operation that knows which files it removes.

    Conflicts are those of Iceberg Java's writes from Spark: always that matching rows were deleted;
    if the change is serializable, also that matching rows were added.
    """
    for file in added:
        operation.append_data_file(file)
    operation.validate_no_conflicting_deletes()
    if serializable:
        operation.validate_no_conflicting_data()


def delete_rows(target: WriteTarget, row_filter: BooleanExpression) -> WrittenChange | NoChange:
    """Delete the rows for which a filter is true; a row for which it is unknown is kept.

    Files whose every row matches are removed without being read. The property `write.delete.mode`
    decides how rows are removed from the other files, and `write.delete.isolation-level` what other
    writers may do meanwhile.
    """
    target.bound(row_filter)
    with row_level_change(target, "delete") as change:
        _remove_matching(change, row_filter)
        return change.finish(row_filter)


def overwrite_rows(
    target: WriteTarget, data: GivenRows, row_filter: BooleanExpression
) -> WrittenChange | NoChange:
    """Delete the rows that match a filter and add new ones, in one snapshot.

    Files that also hold other rows are rewritten. The isolation level is that of `delete_rows`; the
    new rows need not match the filter.
    """
    target.bound(row_filter)
    with CopyOnWrite(target, "delete") as change:
        change.write_all(data)
        _remove_matching(change, row_filter)
        return change.finish(row_filter)


def replace_partitions(target: WriteTarget, data: GivenRows) -> WrittenChange | NoChange | None:
    """Replace all rows of the partitions, of the current spec, that new rows, if any, belong to.

    Files of other specs that also hold other rows are rewritten.
    """
    if target.metadata.spec().is_unpartitioned:
        raise ValidationError(
            "The table is not partitioned: there are no partitions to replace",
            hint="Use overwrite to replace all rows, or those that match a filter.",
        )
    serializable = target.is_serializable("delete")
    operation = ReplacePartitions(target.io, target.snapshot_properties, target.branch)
    operation.validate_from_snapshot(target.snapshot_id())
    files = write_data(target.io, target.metadata, data)
    if not files:
        return None
    metadata = target.metadata
    manifests = parent_manifests(target.io, metadata, target.snapshot())
    if has_other_specs(manifests, [metadata.default_spec_id]):
        rows = partition_rows(metadata, metadata.schema(), files)
        with CopyOnWrite(target, "delete") as change:
            change.add_files(files)
            _remove_matching(change, rows)
            return change.finish(rows)
    replace_by(operation, files, serializable=serializable)
    return WrittenChange(operation, target.written_with, files)


def _remove_matching(change: RowLevelChange, row_filter: BooleanExpression) -> None:
    target = change.target
    change.by_lineage = not LINEAGE_IDS.isdisjoint(bound_references(target.bound(row_filter)))
    whole: set[tuple[str, PartitionKey]] | None = None
    scan = ArrowScan(
        target.metadata,
        target.io,
        Schema((ROW_POSITION,)),
        workers=1,
    )
    for task in target.tasks(row_filter, unread=isinstance(row_filter, AlwaysTrue)):
        if isinstance(task.residual, AlwaysTrue):
            change.drop(task, whole_partition=True)
            continue
        if whole is None:
            whole = target.wholly_matching(row_filter)
        if (task.file.file_path, index_key(task.file)) in whole:
            change.drop(task)
        else:
            change.remove(task, _positions(scan, task))


def _positions(scan: ArrowScan, task: FileScanTask) -> Positions:
    """Return the positions, ascending, of the rows that match the task's residual filter."""
    found = [numbers_of(batch.column(0)) for batch in scan.read(task)]
    return np.concatenate(found) if found else np.empty(0, np.int64)
