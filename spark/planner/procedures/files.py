"""Procedures that create tables from existing files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from icecomb.catalog import migrate as migration
from icecomb.catalog.hive.catalog import on_metastore
from icecomb.catalog.migrate.applying.existing_files import files_of_folder, files_of_hive_table
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.report.progress import SILENT, THREADS
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.spark.planner.procedures.call import Call, parse_name
from icecomb.spark.planner.procedures.signature import Flag, Int, Long, Options, Text, procedure

_FORMATS: Final = frozenset({"parquet", "orc", "avro"})


@dataclass(frozen=True, slots=True)
class Registered:
    """The content of a registered table."""

    current_snapshot_id: Long | None
    total_records_count: Long | None
    total_data_files_count: Long | None


@dataclass(frozen=True, slots=True)
class Added:
    """Numbers of added files and changed partitions."""

    added_files_count: Long
    changed_partition_count: Long | None


@dataclass(frozen=True, slots=True)
class MigratedOutput:
    """The number of migrated files."""

    migrated_files_count: Long


@dataclass(frozen=True, slots=True)
class Imported:
    """The number of the source's files in the new table."""

    imported_files_count: Long


@procedure
def register_table(call: Call, table: Text, metadata_file: Text) -> list[Registered]:
    """Register an existing metadata file as a table."""
    made = call.catalog.register_table(call.identifier(table), metadata_file)
    snapshot = made.current_snapshot()
    if snapshot is None:
        return [Registered(None, None, None)]
    summary = snapshot.summary or {}
    return [
        Registered(
            snapshot.snapshot_id,
            _number(summary, "total-records"),
            _number(summary, "total-data-files"),
        )
    ]


@procedure
def add_files(  # noqa: PLR0917 - the procedure's parameters
    call: Call,
    table: Text,
    source_table: Text,
    partition_filter: Options | None = None,
    check_duplicate_files: Flag = True,  # noqa: FBT002 - by Iceberg's name and default
    parallelism: Int = THREADS,
) -> list[Added]:
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
        return [Added(0, 0)]
    summary = snapshot.summary or {}
    return [
        Added(
            _number(summary, "added-data-files") or 0, _number(summary, "changed-partition-count")
        )
    ]


@procedure
def migrate(  # noqa: PLR0917 - the procedure's parameters
    call: Call,
    table: Text,
    properties: Options | None = None,
    drop_backup: Flag = False,  # noqa: FBT002 - by Iceberg's name and default
    backup_table_name: Text | None = None,
    parallelism: Int = THREADS,
    ignore_missing_files: Flag = False,  # noqa: FBT002 - by Iceberg's name and default
) -> list[MigratedOutput]:
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
    return [MigratedOutput(done.files)]


@procedure
def snapshot(  # noqa: PLR0917 - the procedure's parameters
    call: Call,
    source_table: Text,
    table: Text,
    location: Text | None = None,
    properties: Options | None = None,
    parallelism: Int = THREADS,
    ignore_missing_files: Flag = False,  # noqa: FBT002 - by Iceberg's name and default
) -> list[Imported]:
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
    return [Imported(made.files)]


def _choices(*, ignore_missing_files: bool) -> migration.Choices:
    accepted = ("missing-partitions",) if ignore_missing_files else ()
    return migration.Choices(accept=accepted)


def _number(summary: Mapping[str, str], key: str) -> int | None:
    return int(summary[key]) if key in summary else None
