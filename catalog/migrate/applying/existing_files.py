"""Existing files for a table to take in: those of a Hive table or of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.journal.context import MigrationContext
from icecomb.catalog.migrate.planning.obstacle import FORMATS
from icecomb.catalog.migrate.source.column_default import column_defaults
from icecomb.catalog.migrate.source.footer import FooterReader
from icecomb.catalog.migrate.source.source import (
    classes_of,
    format_of,
    is_transactional,
    null_name,
    orc_by_position,
    parquet_by_position,
    partition_name,
    skipped_rows,
    spark_findings,
    table_folder,
)
from icecomb.catalog.migrate.source.source_files import (
    PartitionFolder,
    list_folder,
    list_folders,
    shared_folders,
)
from icecomb.catalog.migrate.source.source_schema import narrow_columns
from icecomb.catalog.report.progress import SILENT
from icecomb.format.errors import ValidationError
from icecomb.format.rows.write.partition_path import path_values, value_of_text
from icecomb.format.spec.schema import Schema
from icecomb.format.storage.file_io import FileIO


def files_of_folder(
    io: FileIO, schema: Schema, folder: str, wanted: Mapping[str, str]
) -> dict[str, Mapping[str, Any]]:
    """Return the files of a folder and its subfolders; their paths tell their partitions.

    Args:
        wanted: Partition columns and values of the files to take in.
    """
    found = list_folder(io, PartitionFolder("", folder, ()), by_folders=True)
    if not found.exists:
        raise ValidationError(f"There is no folder {folder}", hint="Give the whole location.")
    files: dict[str, Mapping[str, Any]] = {
        status.location: {}
        for status in (*found.files, *found.nested)
        if _matches(schema, path_values(status.location), wanted, folder)
    }
    if wanted and not files:
        raise _no_partition(folder, wanted)
    return files


def files_of_hive_table(
    context: MigrationContext, schema: Schema, wanted: Mapping[str, str]
) -> dict[str, Mapping[str, Any]]:
    """Return the files of a Hive table's partitions, with their values in the metastore.

    Args:
        wanted: Partition columns and values of the files to take in.
    """
    source = context.entry.load()
    name = source.full_name
    if source.is_iceberg:
        raise ValidationError(
            f"{name} is an Iceberg table: its deletes would be lost",
            hint="INSERT INTO ... SELECT copies its rows.",
        )
    if overwritten := context.overwritten(source):
        raise overwritten.error
    elsewhere = source.is_view or source.parameters.get("storage_handler")
    if not source.storage.location or elsewhere or is_transactional(source):
        raise ValidationError(
            f"The rows of {name} are not simply in files: it is a view, transactional, or kept "
            "elsewhere",
            hint="INSERT INTO ... SELECT copies its rows.",
        )
    if wrong := _read_otherwise(name, source):
        raise wrong
    for finding in spark_findings(source, context.io.properties):
        raise ValidationError(f"{name}: {finding.message}", hint=finding.remedy)
    if source.partition_keys:
        folders, values = _partitions(context, source, schema, wanted)
    elif wanted:
        raise ValidationError(
            f"{name} is not partitioned: there is nothing to choose among partitions",
            hint="Take all of its files.",
        )
    else:
        folders, values = [table_folder(source)], [{}]
    files: dict[str, Mapping[str, Any]] = {}
    listed = list_folders(context.io, folders, SILENT)
    for found, given in zip(listed, values, strict=True):
        where = found.folder.location
        if not found.exists:
            raise ValidationError(
                f"{name} has no folder {where}",
                hint=f"Restore it, or drop the {'partition' if given else 'table'} in Hive.",
            )
        if found.nested:
            raise ValidationError(
                f"{found.nested[0].location} is in a sub-folder, where readers of Hive tables "
                "differ on whether it counts",
                hint="Move such files up or away.",
            )
        files.update((status.location, given) for status in found.files)
    _check_shown(context.io, source, schema, files)
    return files


def _check_shown(io: FileIO, source: HiveTable, schema: Schema, files: Iterable[str]) -> None:
    """Check that Hive and Spark show the values of a Hive table's files unchanged.

    Spark may read a default that the table does not have; Hive may cut a value or show null.
    """
    defaults, narrow = column_defaults(source), narrow_columns(source)
    values = defaults.values(schema)
    known = {f.name.lower(): f.initial_default for f in schema.fields}
    needed = {n for n in defaults.read if n in known and known[n] != values.get(n, ...)}
    if not needed and not narrow:
        return
    reader = FooterReader(io, schema, {}, narrow=narrow, defaults=needed)
    for location in files:
        for problem in reader.shown(location):
            raise ValidationError(
                f"{location} of {source.full_name}: column {problem.column}: {problem.message}",
                hint="INSERT INTO ... SELECT copies what Hive and Spark show.",
                path=location,
            )


def _partitions(
    context: MigrationContext, source: HiveTable, schema: Schema, wanted: Mapping[str, str]
) -> tuple[list[PartitionFolder], list[Mapping[str, Any]]]:
    """Return the folders of the selected partitions, and the values of each."""
    name = source.full_name
    every: list[PartitionFolder] = []
    values: list[Mapping[str, Any]] = []
    wrong: list[ValidationError | None] = []
    for partition in context.partitions(source):
        every.append(
            PartitionFolder(partition_name(source, partition), partition.storage.location or "", ())
        )
        values.append(_given(source, partition.values))
        wrong.append(_read_otherwise(f"partition {every[-1].name} of {name}", partition))
    meant = [at for at, given in enumerate(values) if _matches(schema, given, wanted, name)]
    if wanted and not meant:
        raise _no_partition(name, wanted)
    if errors := [error for at in meant if (error := wrong[at])]:
        raise errors[0]
    if homeless := [every[at].name for at in meant if not every[at].location]:
        raise ValidationError(
            f"The metastore has no folder of partition {homeless[0]} of {name}",
            hint="ALTER TABLE ... PARTITION (...) SET LOCATION in Hive, or drop it there.",
        )
    # One that is not selected counts, too: taken in later, its file would be there already.
    chosen = set(meant)
    shared = shared_folders(context.io, [one.location for one in every])
    for one, other in shared:
        if not chosen.isdisjoint((one, other)):
            raise ValidationError(
                f"Partitions {every[one].name} and {every[other].name} of {name} share the folder "
                f"{every[one].location}: Hive shows its rows in both, a file would be in one",
                hint="INSERT INTO ... SELECT copies the rows, or drop one of them in Hive.",
            )
    return [every[at] for at in meant], [values[at] for at in meant]


def _read_otherwise(what: str, entry: HiveTable | HivePartition) -> ValidationError | None:
    """Return an error if Hive reads the files of an entry by other rules, or None."""
    if format_of(entry.storage) is None:
        return ValidationError(
            f"The files of {what} are not simply {FORMATS} ({classes_of(entry.storage)})",
            hint="Copy its rows by what knows these classes: INSERT INTO ... SELECT.",
        )
    if orc_by_position(entry) or parquet_by_position(entry):
        return ValidationError(
            f"Hive finds the columns of {what} by position, whatever their names in its files",
            hint="INSERT INTO ... SELECT copies its rows.",
        )
    if skipped := skipped_rows(entry):
        return ValidationError(
            f"Hive leaves rows of each file of {what} out ({skipped})",
            hint="Unset it in Hive if they are rows, else copy the table there.",
        )
    return None


def _no_partition(where: str, wanted: Mapping[str, str]) -> ValidationError:
    return ValidationError(
        f"{where} has no partitions of {wanted}",
        hint="Give values of existing partitions, by the names of their columns.",
    )


def _given(source: HiveTable, texts: tuple[str, ...]) -> dict[str, str | None]:
    null = null_name(source)
    pairs = zip(source.partition_keys, texts, strict=True)
    return {key.name: None if text == null else text for key, text in pairs}


def _matches(
    schema: Schema, found: Mapping[str, str | None], wanted: Mapping[str, str], where: str
) -> bool:
    """Return whether a partition is selected, comparing values rather than texts."""
    spelled = {name.lower(): value for name, value in found.items()}
    for name, text in wanted.items():
        if name.lower() not in spelled:
            raise ValidationError(
                f"{where} is not partitioned by {name}",
                hint=f"Its partition columns: {', '.join(found) or 'none'}.",
            )
        column = schema.find_field(name, case_sensitive=False)
        if value_of_text(spelled[name.lower()], column) != value_of_text(text, column):
            return False
    return True
