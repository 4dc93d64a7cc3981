"""What the data files of a write do to a table: the change that its commit makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from icecomb.format.errors import CommitFailedError
from icecomb.format.manifests.manifest import DataFile, DataFileContent
from icecomb.spark.planner.audit import Place
from icecomb.spark.planner.predicates import exact_filter, row_filter
from icecomb.spark.planner.values import partition_types, value_from_json
from icecomb.spark.planner.written_files import delete_file

if TYPE_CHECKING:
    from icecomb.catalog.table import Table
    from icecomb.format.expressions.expression import BooleanExpression
    from icecomb.format.operation.overwrite import OverwriteFiles
    from icecomb.format.operation.row_delta import RowDelta
    from icecomb.format.operation.snapshot_producer import SnapshotProducer
    from icecomb.format.spec.metadata import TableMetadata
    from icecomb.format.spec.schema import Schema
    from icecomb.spark.planner.protocol import (
        DeleteEntry,
        Delta,
        FileEntry,
        Replaced,
        WriteState,
        WrittenDeletes,
    )
    from icecomb.spark.planner.states import TableState

APPEND: Final = "append"
OVERWRITE: Final = "overwrite"
OVERWRITE_PARTITIONS: Final = "overwrite_partitions"
REPLACE_FILES: Final = "replace_files"
CHANGE_ROWS: Final = "change_rows"


def check_same_table(table: Table, uuid: str) -> None:
    """Refuse a change that was made for another table.

    Args:
        table: The table as it is now.
        uuid: What it was when the statement began.

    Raises:
        CommitFailedError: It is another one.
    """
    check_uuid(".".join(table.identifier), table.metadata, uuid)


def check_uuid(name: str, metadata: TableMetadata, uuid: str) -> None:
    """Refuse a change that was made for another table.

    Args:
        name: The table's name, for messages.
        metadata: The table as it is now.
        uuid: What it was when the statement began.

    Raises:
        CommitFailedError: It is another one.
    """
    if str(metadata.table_uuid) != uuid:
        raise CommitFailedError(
            f"Table {name} was dropped and made anew while Spark wrote to it",
            hint="run the statement again",
            table=name,
        )


def overwrite(
    table: Table, write: WriteState, files: Sequence[DataFile], summary: Mapping[str, str]
) -> SnapshotProducer:
    """Replace the rows that match the write's filters; their files must match whole."""
    schema = table.metadata.schema_by_id(write.schema_id)
    rows = exact_filter(write.filters, schema, case_sensitive=True)
    change = _overwrite_since(table, write, summary, schema)
    change.overwrite_by_row_filter(rows)
    return _guarded(change, table, write, "delete", files)


def overwrite_partitions(
    table: Table, write: WriteState, files: Sequence[DataFile], summary: Mapping[str, str]
) -> SnapshotProducer | None:
    """Replace the partitions that the new files belong to."""
    from icecomb.format.operation.overwrite import ReplacePartitions

    if not files:
        return None
    place = Place.of(write)
    change = ReplacePartitions(table.io, summary, place.branch, stage_only=place.is_staged)
    change.validate_from_snapshot(write.snapshot_id).validate_no_conflicting_deletes()
    if _is_serializable(table, write, "delete"):
        change.validate_no_conflicting_data()
    for file in files:
        change.append_data_file(file)
    return change


def replace_files(  # noqa: PLR0917 - a write and what it replaces
    table: Table,
    state: TableState,
    write: WriteState,
    replaced: Replaced,
    files: Sequence[DataFile],
    summary: Mapping[str, str],
) -> SnapshotProducer | None:
    """Replace files by others that hold their rows, as UPDATE, DELETE or MERGE changed them.

    Args:
        table: The table as it is now.
        state: The table as the statement read it.
        write: What began the write.
        replaced: The filters that the statement planned its files by, and the files it read.
        files: The new files.
        summary: More keys of the snapshot's summary.

    Raises:
        CommitFailedError: The statement did not keep the number of rows.
        ValidationError: Others contradicted the change meanwhile, or removed one of the files.
    """
    if not replaced.files and not files:
        return None
    if write.command == "update":
        _check_row_count(state, replaced.files, files)
    change = _overwrite_since(table, write, summary, state.schema)
    change.conflict_detection_filter(
        row_filter(replaced.filters, state.schema, case_sensitive=True)
    )
    for entry in replaced.files:
        change.delete_data_file(_data_file(state, entry))
    return _guarded(change, table, write, str(write.command), files)


def change_rows(  # noqa: PLR0917 - a write and what it deletes
    table: Table,
    state: TableState,
    write: WriteState,
    delta: Delta,
    files: Sequence[DataFile],
    summary: Mapping[str, str],
) -> SnapshotProducer | None:
    """Add rows, and delete others by their positions, as UPDATE, DELETE or MERGE wants it.

    Args:
        table: The table as it is now.
        state: The table as the statement read it.
        write: What began the write.
        delta: The filters that the statement planned its files by, and what it deletes.
        files: The new data files.
        summary: More keys of the snapshot's summary.

    Raises:
        CommitFailedError: The statement did not keep the number of rows, or deletes what it has
            not read.
        ValidationError: Others contradicted the change meanwhile.
    """
    from icecomb.format.row_changes.position_delta import PositionDelta

    if not delta.deletes and not files:
        return None
    if write.command == "update":
        deleted = sum(deletes.deleted for deletes in delta.deletes)
        _check_kept(state, deleted, sum(file.record_count for file in files))
    entries = {entry.path: entry for entry in delta.files}
    written = [
        delete_file(state.metadata, write, deletes, _only_partition(state, deletes, entries))
        for deletes in delta.deletes
    ]
    change = _row_delta(table, state, write, summary)
    change.validate_from_snapshot(write.snapshot_id)
    PositionDelta(
        _read_rows(state, delta),
        files,
        written,
        entries.keys(),
        # rows that go by what was there before others deleted some are no less than replaced
        replaces_rows=write.command != "delete" or write.older,
        serializable=_is_serializable(table, write, str(write.command)),
    ).add_to(change)
    for path in {path for deletes in delta.deletes if deletes.replaces for path in deletes.files}:
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
    """Add the rows that a MERGE found missing: it does nothing else, and Spark makes it an append.

    Args:
        table: The table as it is now.
        state: The table as the statement read it.
        write: What began the write.
        delta: The filters that the statement planned its files by.
        files: The new data files.
        summary: More keys of the snapshot's summary.

    Raises:
        ValidationError: It is serializable, and others added or removed such rows meanwhile.
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

    place = Place.of(write)
    return RowDelta(
        table.io, summary, place.branch, stage_only=place.is_staged, schema=state.schema
    )


def _read_rows(state: TableState, delta: Delta) -> BooleanExpression:
    from icecomb.format.expressions.expression import AlwaysFalse

    if delta.filters is None:
        # what reads nothing of the table depends on nothing that others do to it
        return AlwaysFalse()
    return row_filter(delta.filters, state.schema, case_sensitive=True)


def _only_partition(
    state: TableState, deletes: WrittenDeletes, entries: Mapping[str, FileEntry]
) -> FileEntry:
    """One of the data files of a delete file: all are in its partition.

    Raises:
        CommitFailedError: They are not, or one was not read: its rows would come back.
    """
    found = [entries.get(path) for path in deletes.files]
    places = {(entry.spec_id, entry.partition) for entry in found if entry is not None}
    if None in found or len(places) != 1 or found[0] is None:
        raise CommitFailedError(
            f"Table {state.name}: the delete file {deletes.file.path} is about data files that the "
            "statement has not read, or of several partitions",
            hint="nothing was changed; please report it with the statement",
            table=state.name,
        )
    return found[0]


def _own_deletes(state: TableState, entry: FileEntry, own: DeleteEntry) -> DataFile:
    """A delete file that a plan named: what a change needs to find it in the table."""
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

    place = Place.of(write)
    change = OverwriteFiles(
        table.io, summary, place.branch, stage_only=place.is_staged, schema=schema
    )
    return change.validate_from_snapshot(write.snapshot_id)


def _guarded(
    change: OverwriteFiles,
    table: Table,
    write: WriteState,
    command: str,
    files: Sequence[DataFile],
) -> OverwriteFiles:
    """The change with its new files, refused when others contradict it meanwhile."""
    for file in files:
        change.append_data_file(file)
    change.validate_no_conflicting_deletes()
    if _is_serializable(table, write, command):
        change.validate_no_conflicting_data()
    return change


def _is_serializable(table: Table, write: WriteState, command: str) -> bool:
    from icecomb.format.row_changes.write_target import WriteTarget

    if write.command is not None and write.older:
        # it has read two states of the table: no isolation lets it miss what lies between them
        return True
    if write.serializable is not None and write.command is None:
        return write.serializable
    return WriteTarget(table.io, table.metadata).is_serializable(command)


def _data_file(state: TableState, entry: FileEntry) -> DataFile:
    """The file that a plan named: what a change needs to find it in the table."""
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
    """UPDATE keeps the number of rows, whatever Spark made of the statement."""
    if any(entry.has_deletes or entry.rows < 0 for entry in read):
        return
    before = sum(entry.rows for entry in read)
    _check_kept(state, before, sum(file.record_count for file in files))


def _check_kept(state: TableState, before: int, after: int) -> None:
    if before != after:
        raise CommitFailedError(
            f"Table {state.name}: UPDATE read {before} rows and wrote {after}",
            hint="nothing was changed; please report it with the statement",
            table=state.name,
        )
