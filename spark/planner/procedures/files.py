"""Procedures that make tables of files which exist already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from icecomb.catalog import migrate as migration
from icecomb.catalog.hive.catalog import on_metastore
from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.context import Workplace
from icecomb.catalog.migrate.source import null_name, partition_name
from icecomb.catalog.migrate.source_files import Place, list_places
from icecomb.catalog.progress import SILENT, THREADS
from icecomb.catalog.table import Table
from icecomb.format.errors import UnsupportedError, ValidationError
from icecomb.format.rows.write.partition_path import path_values, value_of_text
from icecomb.format.spec.schema import Schema
from icecomb.spark.planner.procedures.call import Call, parse_name
from icecomb.spark.planner.procedures.signature import Flag, Int, Long, Options, Text, procedure

_FORMATS: Final = frozenset({"parquet", "orc", "avro"})


@dataclass(frozen=True, slots=True)
class Registered:
    """What a registered table has."""

    current_snapshot_id: Long | None
    total_records_count: Long | None
    total_data_files_count: Long | None


@dataclass(frozen=True, slots=True)
class Added:
    """How many files were added, to how many partitions."""

    added_files_count: Long
    changed_partition_count: Long | None


@dataclass(frozen=True, slots=True)
class Migrated:
    """How many files were taken over."""

    migrated_files_count: Long


@dataclass(frozen=True, slots=True)
class Imported:
    """How many files of the source the new table has."""

    imported_files_count: Long


@procedure
def register_table(call: Call, table: Text, metadata_file: Text) -> list[Registered]:
    """Take an existing metadata file in under a name."""
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
    """Take the files of a Hive table or of a folder into a table, where they are."""
    target = call.load(table)
    wanted = dict(partition_filter or {})
    if wanted and not target.spec().fields:
        raise ValidationError(
            f"Table {table} is not partitioned: there is nothing for partition_filter to choose",
            hint="leave partition_filter out",
        )
    parts = parse_name(source_table)
    if len(parts) == 2 and parts[0].lower() in _FORMATS:
        files = _of_folder(target, parts[1], wanted)
    else:
        files = _of_hive_table(call, target, source_table, wanted)
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
) -> list[Migrated]:
    """Make a Hive table an Iceberg table in place; `icecomb migrate revert` goes back."""
    if backup_table_name is not None:
        raise UnsupportedError(
            "Migrate makes no backup table, whose files would be those of the new table",
            hint="leave backup_table_name out: `icecomb migrate revert` gives the old table back",
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
        migration.finalize(call.catalog, place)
    return [Migrated(done.files)]


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
    """Make an Iceberg table of a Hive table's files, to try; the Hive table stays."""
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


def _of_folder(
    target: Table, folder: str, wanted: Mapping[str, str]
) -> dict[str, Mapping[str, Any]]:
    """The files of a folder and of those below; they say themselves which partition they are of."""
    (found,) = list_places(target.io, [Place("", folder, ())], SILENT)
    if not found.exists:
        raise ValidationError(f"There is no folder {folder}", hint="give the whole location")
    schema = target.schema()
    files: dict[str, Mapping[str, Any]] = {
        status.location: {}
        for status in (*found.files, *found.nested)
        if _matches(schema, path_values(status.location), wanted, folder)
    }
    if wanted and not files:
        raise _no_partition(folder, wanted)
    return files


def _of_hive_table(
    call: Call, target: Table, name: str, wanted: Mapping[str, str]
) -> dict[str, Mapping[str, Any]]:
    """The files of a Hive table's partitions, with the values that the metastore has of them."""
    workplace = Workplace(on_metastore(call.catalog), *call.source(name), SILENT)
    source = workplace.entry.load()
    if source.is_iceberg:
        raise ValidationError(
            f"{name} is an Iceberg table: its deletes would be lost",
            hint="INSERT INTO ... SELECT copies its rows",
        )
    if not source.storage.location or source.parameters.get("transactional", "").lower() == "true":
        raise ValidationError(
            f"The rows of {name} are not simply in files: it is a view, transactional, or kept "
            "elsewhere",
            hint="INSERT INTO ... SELECT copies its rows",
        )
    places: list[Place] = []
    values: dict[str, Mapping[str, Any]] = {}
    if source.partition_keys:
        for partition in workplace.partitions(source):
            given = _given(source, partition.values)
            if _matches(target.schema(), given, wanted, name):
                label, location = partition_name(source, partition), partition.storage.location
                places.append(Place(label, location or "", ()))
                values[label] = given
        if wanted and not places:
            raise _no_partition(name, wanted)
    elif wanted:
        raise ValidationError(
            f"{name} is not partitioned: there is nothing for partition_filter to choose",
            hint="leave partition_filter out",
        )
    else:
        places.append(Place("", source.storage.location or "", ()))
        values[""] = {}
    files: dict[str, Mapping[str, Any]] = {}
    for found in list_places(target.io, places, SILENT):
        where = found.place.location
        if not found.exists:
            raise ValidationError(
                f"{name} has no folder {where}", hint="restore it, or drop the partition in Hive"
            )
        if found.nested:
            raise ValidationError(
                f"{found.nested[0].location} lies in a sub-folder, where readers of Hive tables "
                "differ whether it counts",
                hint="move such files up or away",
            )
        files.update((status.location, values[found.place.name]) for status in found.files)
    return files


def _no_partition(where: str, wanted: Mapping[str, str]) -> ValidationError:
    return ValidationError(
        f"{where} has no partitions of {wanted}",
        hint="give values of partitions that there are, by the names of their columns",
    )


def _given(source: HiveTable, texts: tuple[str, ...]) -> dict[str, str | None]:
    null = null_name(source)
    pairs = zip(source.partition_keys, texts, strict=True)
    return {key.name: None if text == null else text for key, text in pairs}


def _matches(
    schema: Schema, found: Mapping[str, str | None], wanted: Mapping[str, str], where: str
) -> bool:
    """Whether a partition is one of those that are asked for; values are compared, not texts."""
    spelled = {name.lower(): value for name, value in found.items()}
    for name, text in wanted.items():
        if name.lower() not in spelled:
            raise ValidationError(
                f"{where} is not partitioned by {name}",
                hint=f"its partition columns: {', '.join(found) or 'none'}",
            )
        column = schema.find_field(name, case_sensitive=False)
        if value_of_text(spelled[name.lower()], column) != value_of_text(text, column):
            return False
    return True
