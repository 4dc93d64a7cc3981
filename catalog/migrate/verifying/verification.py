"""Verification of a migrated table against the Hive table of its journal."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.journal.dropped_partitions import DroppedPartitions
from icecomb.catalog.migrate.journal.journal import Journal, Step
from icecomb.catalog.migrate.journal.late_write import find_late_writes
from icecomb.catalog.migrate.source.column_default import column_defaults
from icecomb.catalog.migrate.source.partition_folders import PartitionBytes
from icecomb.catalog.migrate.source.source import partition_folder, table_folder
from icecomb.catalog.migrate.source.source_files import PartitionListing, list_folders
from icecomb.catalog.migrate.source.source_schema import narrow_columns, source_schema
from icecomb.catalog.migrate.verifying.comparison import (
    Comparison,
    FilePair,
    HiveColumns,
    compare_files,
)
from icecomb.format.errors import MigrationError, NoSuchSnapshotError
from icecomb.format.shell_command import shell_command

if TYPE_CHECKING:
    from icecomb.format.rows.values.scan_task import FileScanTask
    from icecomb.format.spec.metadata import TableMetadata


def verify(context: MigrationContext) -> Comparison:
    """Compare the migration's snapshot with what Hive reads: files, partitions, every value.

    Later writes to the Iceberg table are ignored; changes of the files by Hive's writers are not.
    """
    table = context.entry.load()
    found = context.migrated(table)
    if found is None:
        raise MigrationError(
            f"{table.full_name} was not migrated by icecomb: there is nothing to compare",
            hint=shell_command("migrate", "status", table.full_name),
            table=table.full_name,
        )
    journal, prepared = found
    context.require_metadata(table)
    snapshot_id = prepared.get("snapshot-id")
    metadata = _metadata(context, table.metadata_location or "", snapshot_id)
    comparison = Comparison()
    tasks = _tasks(context, metadata, snapshot_id)
    if added := set(journal.added()):
        now = _tasks(context, metadata, metadata.current_snapshot_id)
        tasks |= {path: task for path, task in now.items() if path in added}
    dropped = DroppedPartitions(context, journal, table)
    for name in dropped.with_rows(metadata):
        comparison.differ(
            f"{name}: Hive dropped it after the conversion, its rows are in Iceberg's"
        )
    late = find_late_writes(context, journal, table, metadata)
    for description in late.descriptions():
        comparison.differ(description)
    pairs = _pairs(context, journal, tasks, comparison, dropped, {*late.replaced, *late.gone})
    comparison.finished = journal.step(Step.CLEANED) is not None
    snapshot = None if snapshot_id is None else metadata.snapshot_by_id(snapshot_id)
    schema_id = snapshot.schema_id if snapshot is not None else None
    schema = metadata.schema() if schema_id is None else metadata.schema_by_id(schema_id)
    defaults = column_defaults(journal.table).values(schema)
    columns = HiveColumns(schema, narrow_columns(journal.table), defaults)
    compare_files(context.io, metadata, columns, pairs, comparison, context.progress)
    if comparison.difference_count == 0:
        journal.record(Step.VERIFIED, rows=comparison.hive.rows, files=comparison.files)
        context.note_verified(journal, table)
    return comparison


def _metadata(context: MigrationContext, pointer: str, snapshot_id: int | None) -> TableMetadata:
    from icecomb.format.spec.metadata_file import read_metadata

    metadata = read_metadata(context.io, pointer)
    if snapshot_id is not None and metadata.snapshot_by_id(snapshot_id) is None:
        raise NoSuchSnapshotError(
            f"The migration's snapshot {snapshot_id} was expired: it cannot be compared any more",
            hint="Verify before expiring snapshots; `icecomb migrate status` says whether a revert "
            "is still possible, and `icecomb migrate finalize --unverified` goes without both.",
        )
    return metadata


def _tasks(
    context: MigrationContext, metadata: TableMetadata, snapshot_id: int | None
) -> dict[str, FileScanTask]:
    from icecomb.format.scan.table_scan import TableScan

    if snapshot_id is None:
        return {}
    scan = TableScan(metadata, context.io, snapshot_id=snapshot_id)
    return {task.file.file_path: task for task in scan.plan_files()}


def _pairs(  # noqa: PLR0917 - what is compared, and what is reported already
    context: MigrationContext,
    journal: Journal,
    tasks: Mapping[str, FileScanTask],
    comparison: Comparison,
    dropped: DroppedPartitions,
    reported: Container[str],
) -> list[FilePair]:
    table, zone = journal.table, journal.choices.time_zone
    converted = source_schema(table, journal.choices.timestamp)
    folders = [table_folder(table)]
    if table.partition_keys:
        folders = [partition_folder(table, one, converted, zone) for one in journal.partitions()]
    keys = [key.name.lower() for key in table.partition_keys]
    pairs: list[FilePair] = []
    packing = PartitionBytes(converted.spec, converted.schema)
    left = {path: one for path, one in tasks.items() if not dropped.name_of(one.file.partition)}
    folders = [one for one in folders if not dropped.name_of(one.values)]
    for found in list_folders(context.io, folders, context.progress):
        comparison.partitions.setdefault(found.folder.name, [0, 0])
        for location in _visible(found, journal, tasks):
            task = left.pop(location, None)
            if task is None or location in reported:
                continue  # see `find_late_writes`
            # encoded, because NaN is not equal to itself
            if packing.pack(task.file.partition) != packing.pack(found.folder.values):
                comparison.differ(
                    f"{location}: partition {found.folder.values} in Hive, "
                    f"{task.file.partition} in Iceberg"
                )
            constants: dict[str, Any] = dict(zip(keys, found.folder.values, strict=True))
            pairs.append(FilePair(found.folder.name, location, constants, task))
    for location in (one for one in left if one not in reported):
        comparison.differ(f"{location}: in the Iceberg table, not in Hive's folders")
    return pairs


def _visible(
    found: PartitionListing, journal: Journal, tasks: Mapping[str, FileScanTask]
) -> list[str]:
    locations = [status.location for status in found.files]
    if "subdirectories" in journal.choices.accept:
        # Subfolders now hold Iceberg's own files, too: only those taken over count.
        locations += [s.location for s in found.nested if s.location in tasks]
    return locations
