"""Procedures that create tables from existing files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icecomb.catalog import migrate as migration
from icecomb.catalog.hive.catalog import on_metastore
from icecomb.catalog.migrate.applying.existing_files import files_of_folder, files_of_hive_table
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.report.progress import SILENT, THREADS
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.spark.planner.procedures.call import Call, parse_name
from icecomb.spark.planner.procedures.signature import procedure

_FORMATS: Final = frozenset({"parquet", "orc", "avro"})


@procedure(
    "table! string, metadata_file! string -> current_snapshot_id bigint?, "
    "total_records_count bigint?, total_data_files_count bigint?"
)
def register_table(call: Call, table: str, metadata_file: str) -> list[tuple[int | None, ...]]:
    """Register an existing metadata file as a table."""
    made = call.catalog.register_table(call.identifier(table), metadata_file)
    snapshot = made.current_snapshot()
    if snapshot is None:
        return [(None, None, None)]
    summary = snapshot.summary or {}
    return [
        (
            snapshot.snapshot_id,
            _number(summary, "total-records"),
            _number(summary, "total-data-files"),
        )
    ]


@procedure(
    "table! string, source_table! string, partition_filter map<string,string>, "
    f"check_duplicate_files boolean = true, parallelism int = {THREADS} "
    "-> added_files_count bigint, changed_partition_count bigint?"
)
def add_files(
    call: Call,
    *,
    table: str,
    source_table: str,
    partition_filter: Mapping[str, str] | None,
    check_duplicate_files: bool,
    parallelism: int,
) -> list[tuple[int, int | None]]:
    """Add the files of a Hive table or of a folder to a table, without moving them."""
    target = call.load(table)
    wanted = dict(partition_filter or {})
    if wanted and not target.spec().fields:
        raise ValidationError(
            f"Table {table} is not partitioned: there is nothing for partition_filter to select",
            hint="Leave partition_filter out.",
        )
    parts = parse_name(source_table)
    if len(parts) == 2 and parts[0].lower() in _FORMATS:
        files = files_of_folder(target.io, target.schema(), parts[1], wanted)
    else:
        source = MigrationContext(on_metastore(call.catalog), *call.source(source_table), SILENT)
        files = files_of_hive_table(source, target.schema(), wanted)
    before = target.metadata.current_snapshot_id
    target.add_files(
        list(files),
        call.summary,
        check_duplicate_files,
        partition=lambda path: files[path],
        parallelism=parallelism,
    )
    call.changed(target)
    snapshot = target.current_snapshot()
    if snapshot is None or snapshot.snapshot_id == before:
        return [(0, 0)]
    summary = snapshot.summary or {}
    return [
        (_number(summary, "added-data-files") or 0, _number(summary, "changed-partition-count"))
    ]


@procedure(
    "table! string, properties map<string,string>, drop_backup boolean = false, "
    f"backup_table_name string, parallelism int = {THREADS}, ignore_missing_files boolean = false "
    "-> migrated_files_count bigint"
)
def migrate(
    call: Call,
    *,
    table: str,
    properties: Mapping[str, str] | None,
    drop_backup: bool,
    backup_table_name: str | None,
    parallelism: int,
    ignore_missing_files: bool,
) -> list[tuple[int]]:
    """Convert a Hive table to Iceberg in place; `icecomb migrate revert` undoes it."""
    if backup_table_name is not None:
        raise UnsupportedError(
            "Migrate makes no backup table, whose files would be those of the new table",
            hint="Leave backup_table_name out: `icecomb migrate revert` restores the old table.",
        )
    place = call.source(table)
    done = migration.apply(
        call.catalog,
        place,
        _choices(ignore_missing_files=ignore_missing_files),
        properties=properties,
        parallelism=parallelism,
    )
    if drop_backup:
        # the user wants no way back, and checks the table afterwards, as with Iceberg's procedure
        migration.finalize(call.catalog, place, unverified=True)
    return [(done.files,)]


@procedure(
    "source_table! string, table! string, location string, properties map<string,string>, "
    f"parallelism int = {THREADS}, ignore_missing_files boolean = false "
    "-> imported_files_count bigint"
)
def snapshot(
    call: Call,
    *,
    source_table: str,
    table: str,
    location: str | None,
    properties: Mapping[str, str] | None,
    parallelism: int,
    ignore_missing_files: bool,
) -> list[tuple[int]]:
    """Create an Iceberg table from a Hive table's files, for testing; the Hive table stays."""
    made = migration.snapshot(
        call.catalog,
        call.source(source_table),
        call.identifier(table),
        _choices(ignore_missing_files=ignore_missing_files),
        location=location,
        properties=properties,
        parallelism=parallelism,
    )
    return [(made.files,)]


def _choices(*, ignore_missing_files: bool) -> migration.Choices:
    accepted = ("missing-partitions",) if ignore_missing_files else ()
    return migration.Choices(accept=accepted)


def _number(summary: Mapping[str, str], key: str) -> int | None:
    return int(summary[key]) if key in summary else None
