"""Table changes made by the commits of writes."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import REPEATED_FILE_OR_COPY, CommitFailedError, ValidationError
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.spark.planner.files import decode_positions
from icecomb.spark.planner.scan.predicates import exact_filter, row_filter
from icecomb.spark.planner.table.audit import CommitTarget
from icecomb.spark.planner.write.written_files import delete_file
from icecomb.spark.values import partition_types, value_from_json

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy as np
    import numpy.typing as npt

    from icecomb.catalog.table.table import Table
    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.format.operation.overwrite import OverwriteFiles
    from icecomb.format.operation.row_delta import RowDelta
    from icecomb.format.operation.snapshot_producer import SnapshotProducer
    from icecomb.format.rows.deletes.deletion_vector_writer import OlderDeletes
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.spark.planner.protocol.scans import DeleteEntry, FileEntry
    from icecomb.spark.planner.protocol.writes import Delta, Replaced, WriteState, WrittenFile
    from icecomb.spark.planner.table.states import TableState


APPEND: Final = "append"
OVERWRITE: Final = "overwrite"
OVERWRITE_PARTITIONS: Final = "overwrite_partitions"
REPLACE_FILES: Final = "replace_files"
CHANGE_ROWS: Final = "change_rows"


def check_same_table(table: Table, uuid: str) -> None:
    """Refuse a change that was made for a table with another uuid."""
    check_uuid(".".join(table.identifier), table.metadata, uuid)


def check_uuid(name: str, metadata: TableMetadata, uuid: str) -> None:
    """Refuse a change that was made for a table with another uuid; `name` is for messages."""
    if str(metadata.table_uuid) != uuid:
        raise CommitFailedError(
            f"Table {name} was dropped and re-created while Spark wrote to it",
            hint="Run the statement again.",
            table=name,
        )


def overwrite(
    table: Table, write: WriteState, files: Sequence[DataFile], summary: Mapping[str, str]
) -> SnapshotProducer:
    """Replace the rows that match the write's filters; whole files must match."""
    from icecomb.format.row_changes.row_level_change import replace_by

    schema = table.metadata.schema_by_id(write.schema_id)
    rows = exact_filter(write.filters, schema, case_sensitive=True)
    change = _overwrite_since(table, write, summary, schema)
    change.overwrite_by_row_filter(rows)
    replace_by(change, files, serializable=_is_serializable(table, write, "delete"))
    return change


def overwrite_partitions(
    table: Table, write: WriteState, files: Sequence[DataFile], summary: Mapping[str, str]
) -> SnapshotProducer | None:
    """Replace the partitions that the new files belong to."""
    from icecomb.format.operation.overwrite import ReplacePartitions
    from icecomb.format.row_changes.row_level_change import replace_by

    if not files:
        return None
    target = CommitTarget.of(write)
    change = ReplacePartitions(table.io, summary, target.branch, stage_only=target.is_staged)
    change.validate_from_snapshot(write.snapshot_id)
    replace_by(change, files, serializable=_is_serializable(table, write, "delete"))
    return change


def replace_files(  # noqa: PLR0917 - a write and what it replaces
    table: Table,
    state: TableState,
    write: WriteState,
    replaced: Replaced,
    files: Sequence[DataFile],
    summary: Mapping[str, str],
) -> SnapshotProducer | None:
    """Replace files by others with their rows as changed by UPDATE, DELETE or MERGE.

    Args:
        state: The table's state that the statement read.
        replaced: The filters with which the statement planned its files, and the files it read.
    """
    from icecomb.format.row_changes.row_level_change import add_replacement

    if not replaced.files and not files:
        return None
    if write.command == "update":
        _check_row_count(state, replaced.files, files)
    change = _overwrite_since(table, write, summary, state.schema)
    add_replacement(
        change,
        row_filter(replaced.filters, state.schema, case_sensitive=True),
        files,
        [_data_file(state, entry) for entry in replaced.files],
        serializable=_is_serializable(table, write, str(write.command)),
    )
    return change


def change_rows(  # noqa: PLR0917 - a write and what it deletes
    table: Table,
    state: TableState,
    write: WriteState,
    delta: Delta,
    files: Sequence[DataFile],
    summary: Mapping[str, str],
) -> SnapshotProducer | None:
    """Add rows and delete others by position, for UPDATE, DELETE or MERGE.

    Args:
        state: The table's state that the statement read.
        delta: The filters with which the statement planned its files, and its deletes.
    """
    from icecomb.format.row_changes.row_level_change import add_deltas

    if not delta.deletes and not files:
        return None
    if write.command == "update":
        deleted = sum(deletes.deleted for deletes in delta.deletes)
        _check_kept(state, deleted, sum(file.record_count for file in files))
    entries = {entry.path: entry for entry in delta.files}
    written = [
        delete_file(
            state.metadata,
            write,
            deletes.file,
            deletes.files,
            _only_partition(state, deletes.file, deletes.files, entries),
        )
        for deletes in delta.deletes
        if deletes.file is not None
    ]
    vectors, replaced = deletion_vectors(table, state, delta)
    change = _row_delta(table, state, write, summary)
    change.validate_from_snapshot(write.snapshot_id)
    add_deltas(
        change,
        _read_rows(state, delta),
        files,
        [*written, *vectors],
        entries.keys(),
        # rows deleted based on an older snapshot are treated like replaced ones
        replaces_rows=write.command != "delete" or write.older,
        serializable=_is_serializable(table, write, str(write.command)),
        # a statement may name row ids also where no filter does, in a join
        by_lineage=state.metadata.format_version >= 3,
    )
    for file in replaced:
        change.remove_deletes(file)
    replacing = {path for deletes in delta.deletes if deletes.replaces for path in deletes.files}
    _check_alike(entry for entry in delta.files if entry.path in replacing)
    for path in replacing:
        for own in entries[path].own_deletes:
            change.remove_deletes(_own_deletes(state, entries[path], own))
    return change


def insert_missing(  # noqa: PLR0917 - a write and what it found
    table: Table,
    state: TableState,
    write: WriteState,
    delta: Delta,
    files: Sequence[DataFile],
    summary: Mapping[str, str],
) -> SnapshotProducer:
    """Add rows that a MERGE found missing: Spark runs an insert-only MERGE as an append.

    Args:
        state: The table's state that the statement read.
        delta: The filters with which the statement planned its files.
    """
    change = _row_delta(table, state, write, summary)
    if _is_serializable(table, write, str(write.command)):
        change.validate_from_snapshot(write.snapshot_id)
        change.conflict_detection_filter(_read_rows(state, delta))
        change.validate_no_conflicting_data_files().validate_no_conflicting_delete_files()
        change.validate_no_removed_data_files()
    for file in files:
        change.add_rows(file)
    return change


def _row_delta(
    table: Table, state: TableState, write: WriteState, summary: Mapping[str, str]
) -> RowDelta:
    from icecomb.format.operation.row_delta import RowDelta

    target = CommitTarget.of(write)
    return RowDelta(
        table.io, summary, target.branch, stage_only=target.is_staged, schema=state.schema
    )


def _read_rows(state: TableState, delta: Delta) -> BooleanExpression:
    from icecomb.format.expressions.expression import AlwaysFalse

    if delta.filters is None:
        # a statement that does not read the table conflicts with no change of it
        return AlwaysFalse()
    return row_filter(delta.filters, state.schema, case_sensitive=True)


def _only_partition(
    state: TableState,
    file: WrittenFile,
    targets: Sequence[str],
    entries: Mapping[str, FileEntry],
) -> FileEntry:
    """Return one of the data files of a delete file, which all are in its partition.

    All must have been read: rows of others would come back.
    """
    found = [entries.get(path) for path in targets]
    places = {(entry.spec_id, entry.partition) for entry in found if entry is not None}
    if None in found or len(places) != 1 or found[0] is None:
        raise CommitFailedError(
            f"Table {state.name}: the delete file {file.path} is about data files that the "
            "statement has not read, or of several partitions",
            hint="Nothing was changed; please report it with the statement.",
            table=state.name,
        )
    return found[0]


def _check_alike(entries: Iterable[FileEntry]) -> None:
    """Refuse deletes of one entry of a file that would apply to another entry, too."""
    known: dict[str, tuple[DeleteEntry, ...]] = {}
    for entry in entries:
        if known.setdefault(entry.path, entry.own_deletes) != entry.own_deletes:
            raise ValidationError(
                f"Cannot delete rows of {entry.path} by position: the table has it more than once, "
                "and only some of its rows are deleted in all places",
                hint=REPEATED_FILE_OR_COPY,
                path=entry.path,
            )


def _own_deletes(state: TableState, entry: FileEntry, own: DeleteEntry) -> DataFile:
    """Return a planned delete file, with what a change needs to find it in the table."""
    return replace(
        _data_file(state, entry),
        content=DataFileContent.POSITION_DELETES,
        file_path=own.path,
        record_count=own.rows,
        file_size_in_bytes=own.size,
    )


def _overwrite_since(
    table: Table, write: WriteState, summary: Mapping[str, str], schema: Schema
) -> OverwriteFiles:
    from icecomb.format.operation.overwrite import OverwriteFiles

    target = CommitTarget.of(write)
    change = OverwriteFiles(
        table.io, summary, target.branch, stage_only=target.is_staged, schema=schema
    )
    return change.validate_from_snapshot(write.snapshot_id)


def _is_serializable(table: Table, write: WriteState, command: str) -> bool:
    from icecomb.format.row_changes.write_target import WriteTarget

    if write.command is not None and write.older:
        # it has read two snapshots: no isolation level may miss the changes between them
        return True
    if write.serializable is not None and write.command is None:
        return write.serializable
    return WriteTarget(table.io, table.metadata).is_serializable(command)


def _data_file(state: TableState, entry: FileEntry) -> DataFile:
    """Return a planned file, with what a change needs to find it in the table."""
    types = partition_types(state.metadata, entry.spec_id)
    return DataFile(
        file_path=entry.path,
        partition=tuple(map(value_from_json, types, entry.partition)),
        record_count=entry.rows,
        file_size_in_bytes=entry.size,
        spec_id=entry.spec_id,
    )


def _check_row_count(
    state: TableState, read: Sequence[FileEntry], files: Sequence[DataFile]
) -> None:
    """Check that UPDATE preserves the number of rows, however Spark rewrote the statement."""
    if any(entry.has_deletes or entry.rows < 0 for entry in read):
        return
    before = sum(entry.rows for entry in read)
    _check_kept(state, before, sum(file.record_count for file in files))


def _check_kept(state: TableState, before: int, after: int) -> None:
    if before != after:
        raise CommitFailedError(
            f"Table {state.name}: UPDATE read {before} rows and wrote {after}",
            hint="Nothing was changed; please report it with the statement.",
            table=state.name,
        )


def deletion_vectors(
    table: Table, state: TableState, delta: Delta
) -> tuple[list[DataFile], list[DataFile]]:
    """Write a statement's deletion vectors, all in one file.

    Return the vectors, and the delete files that they replace.
    """
    found: dict[str, list[npt.NDArray[np.int64]]] = defaultdict(list)
    for deletes in delta.deletes:
        if deletes.positions is not None:
            found[deletes.files[0]].append(decode_positions(deletes.positions))
    if not found:
        return [], []
    from icecomb.format.rows.deletes.deletion_vector_writer import (
        DeletionVectorWriter,
        OlderDeletes,
    )
    from icecomb.format.rows.deletes.position_delete import distinct

    older = OlderDeletes(table.io)
    tasks = _read_files(state, delta, found.keys(), older)
    writer = DeletionVectorWriter(table.io, table.metadata, str(uuid.uuid4()))
    replaced: list[DataFile] = []
    try:
        for path in list(found):
            new = distinct(found.pop(path))
            positions, gone = older.joined(tasks[path], new)
            writer.add(tasks[path].file, positions)
            replaced += gone
        return writer.close(), replaced
    except BaseException:
        writer.abort()
        raise


def _read_files(
    state: TableState, delta: Delta, paths: Collection[str], older: OlderDeletes
) -> dict[str, FileScanTask]:
    """Plan the files that lose rows again, as the statement has read them, with their deletes."""
    scan = state.scan()
    rows = row_filter(delta.filters or (), state.schema, case_sensitive=True, read=scan.schema())
    planned = scan.filter(rows).plan_files()
    tasks: dict[str, FileScanTask] = {}
    for task in planned:
        if task.file_path in paths:
            older.take(task)
            tasks[task.file_path] = task
    if unread := sorted(paths - tasks.keys()):
        raise CommitFailedError(
            f"Table {state.name}: the statement deletes rows of {unread[0]}, which it has not read",
            hint="Nothing was changed; please report it with the statement.",
            table=state.name,
        )
    return tasks
