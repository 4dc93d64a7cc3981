"""What a migration would do and all that stands in its way; looking changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.finding import Finding, Severity, blocker, note, warning
from icecomb.catalog.migrate.footer import Footer, read_footer
from icecomb.catalog.migrate.journal import Choices
from icecomb.catalog.migrate.obstacle import (
    FORMAT_HINT,
    file_findings,
    schema_findings,
    table_findings,
)
from icecomb.catalog.migrate.partition_value import partition_values
from icecomb.catalog.migrate.progress import Progress
from icecomb.catalog.migrate.source import is_parquet, null_name, partition_name, table_schema
from icecomb.catalog.migrate.source_files import THREADS, Place, PlaceFiles, list_places
from icecomb.catalog.migrate.source_schema import SourceSchema
from icecomb.format.errors import IcecombError, ValidationError
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus
from icecomb.format.storage.location import plain_texts


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to be taken over.

    Attributes:
        place: its partition.
        status: its location and size.
        footer: what its footer says; None when footers were not read.
    """

    place: Place
    status: FileStatus
    footer: Footer | None


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """What would be done to one table.

    Attributes:
        table: "db.table".
        location: the table's folder.
        schema: the Iceberg schema.
        spec: the partition spec, identity on the old partition columns.
        partitions: how many partitions are taken over.
        files: the files to be taken over.
        findings: blockers first.
    """

    table: str
    location: str
    schema: Schema
    spec: PartitionSpec
    partitions: int
    files: tuple[SourceFile, ...]
    findings: tuple[Finding, ...]

    @property
    def blockers(self) -> tuple[Finding, ...]:
        """The findings that stop it."""
        return tuple(f for f in self.findings if f.severity is Severity.BLOCKER)

    @property
    def rows(self) -> int | None:
        """How many rows the files hold, None when footers were not read."""
        counts = [_rows(file.footer) for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def size(self) -> int:
        """How many bytes the files have."""
        return sum(file.status.size for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """The plan for programs."""
        return {
            "table": self.table,
            "location": self.location,
            "blocked": bool(self.blockers),
            "partitions": self.partitions,
            "files": len(self.files),
            "bytes": self.size,
            "rows": self.rows,
            "schema": self.schema.to_json(),
            "partition-spec": self.spec.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
        }


def plan_source(
    io: FileIO,
    table: HiveTable,
    partitions: Iterable[HivePartition],
    choices: Choices,
    progress: Progress,
    *,
    footers: bool = True,
    ignored: tuple[str, ...] = (),
) -> MigrationPlan:
    """Plan the migration of a Hive table; nothing is changed and problems are findings, not errors.

    Args:
        io: reads the files.
        table: the Hive table.
        partitions: its partitions, read only when the table itself could be migrated.
        choices: what the user chose.
        progress: told of partitions and files looked at.
        ignored: folders that are no part of the table although they lie in it.
        footers: whether to read every file's footer; without, only the metastore and the folders
            are looked at.

    Raises:
        FileIOError: a folder cannot be listed.
    """
    converted = table_schema(table, choices.timestamp)
    findings = [*table_findings(table, choices), *schema_findings(converted)]
    if any(f.severity is Severity.BLOCKER for f in findings):
        return _plan(table, converted, 0, (), findings)
    places = _places(io, table, partitions, converted, choices, findings)
    listed = _listed(io, places, choices, progress, findings, ignored)
    files = [SourceFile(found.place, status, None) for found in listed for status in found.files]
    if footers:
        files = _with_footers(io, files, converted, table.parameters, progress)
        findings += file_findings(
            (file.status.location, problem)
            for file in files
            if file.footer
            for problem in file.footer.problems
        )
    elif files:
        findings.append(
            note("files-not-read", "no footer was read", "plan without --quick reads all")
        )
    return _plan(table, converted, len(listed) if table.partition_keys else 0, files, findings)


def _plan(
    table: HiveTable,
    converted: SourceSchema,
    partitions: int,
    files: Sequence[SourceFile],
    findings: Iterable[Finding],
) -> MigrationPlan:
    order = list(Severity)
    ordered = tuple(sorted(findings, key=lambda finding: order.index(finding.severity)))
    return MigrationPlan(
        table.full_name,
        table.storage.location or "",
        converted.schema,
        converted.spec,
        partitions,
        tuple(files),
        ordered,
    )


def _places(  # noqa: PLR0917 - one step of a plan, with all it needs
    io: FileIO,
    table: HiveTable,
    partitions: Iterable[HivePartition],
    converted: SourceSchema,
    choices: Choices,
    findings: list[Finding],
) -> list[Place]:
    if not table.partition_keys:
        return [Place("", table.storage.location or "", ())]
    places: list[Place] = []
    formats: list[str] = []
    wrong: list[str] = []
    for partition in partitions:
        name, location = partition_name(table, partition), partition.storage.location or ""
        if not is_parquet(partition.storage.input_format):
            formats.append(f"{name} ({partition.storage.input_format})")
            continue
        try:
            values = partition_values(
                partition.values,
                converted.spec,
                converted.schema,
                hive_types=[key.type for key in table.partition_keys],
                null_name=null_name(table),
                time_zone=choices.time_zone,
            )
        except ValidationError as error:
            wrong.append(f"{name}: {error.message}")
            continue
        places.append(Place(name, location, values))
    if formats:
        text = f"{len(formats)} partitions are not Parquet"
        findings.append(blocker("partition-format", text, FORMAT_HINT, tuple(formats)))
    if wrong:
        text = f"{len(wrong)} partition values are no exact values of their column's type"
        remedy = "drop these partitions in Hive, or change the type of the partition column there"
        findings.append(blocker("partition-value", text, remedy, tuple(wrong)))
    if shared := _sharing(io, places):
        text = f"{len(shared)} pairs of partitions share a folder: its rows would be in both"
        findings.append(
            blocker("shared-folder", text, "drop one partition of each pair", tuple(shared))
        )
    return places


def _sharing(io: FileIO, places: Sequence[Place]) -> list[str]:
    """The pairs of partitions that have one folder, however it is spelled."""
    first: dict[str, str] = {}
    folders = _plain_folders(io, (place.location for place in places))
    pairs = (
        (first.setdefault(folder, place.name), place.name)
        for folder, place in zip(folders, places, strict=True)
    )
    return [f"{one} and {other}" for one, other in pairs if one != other]


def _plain_folders(io: FileIO, folders: Iterable[str]) -> list[str]:
    return plain_texts((folder.rstrip("/") or "/" for folder in folders), io.properties)


def _listed(  # noqa: PLR0917 - one step of a plan, with all it needs
    io: FileIO,
    places: Sequence[Place],
    choices: Choices,
    progress: Progress,
    findings: list[Finding],
    ignored: tuple[str, ...],
) -> list[PlaceFiles]:
    try:
        listed = list_places(io, places, progress)
    except IcecombError as error:
        findings.append(
            blocker("unreadable-folder", error.message, "make it readable, then plan again")
        )
        return []
    missing = [found.place.name or found.place.location for found in listed if not found.exists]
    if missing and not ("missing-partitions" in choices.accept and places[0].name):
        text = f"folders that do not exist: {len(missing)}"
        remedy = "restore them, drop the partitions in Hive, or --accept missing-partitions"
        findings.append(blocker("missing-folder", text, remedy, tuple(missing)))
    elif missing:
        text = f"partitions without a folder, left out: {len(missing)}"
        findings.append(warning("missing-folder", text, "accepted", tuple(missing)))
    roots = {*_plain_folders(io, (*(place.location for place in places), *ignored))}
    nested = {found.place: _of_no_other(io, found, roots) for found in listed}
    deep = tuple(status.location for some in nested.values() for status in some)
    if deep and "subdirectories" not in choices.accept:
        text = f"{len(deep)} files lie in sub-folders, where Hive readers differ whether they count"
        remedy = "move them up or away, or --accept subdirectories to take them over"
        findings.append(blocker("subdirectories", text, remedy, deep))
    elif deep:
        findings.append(
            warning("subdirectories", f"{len(deep)} files in sub-folders", "accepted", deep)
        )
        listed = [
            PlaceFiles(f.place, f.exists, (*f.files, *nested[f.place]), (), f.empty) for f in listed
        ]
    if empty := sum(found.empty for found in listed):
        findings.append(note("empty-files", f"{empty} empty files hold no rows", "left out"))
    return [found for found in listed if found.exists]


def _of_no_other(io: FileIO, found: PlaceFiles, roots: set[str]) -> list[FileStatus]:
    """The files in sub-folders of a place that are no folders of other places, nor below one."""
    folders = list(dict.fromkeys(_folder(status) for status in found.nested))
    (own,) = _plain_folders(io, [found.place.location])
    plain = dict(zip(folders, _plain_folders(io, folders), strict=True))
    return [s for s in found.nested if not _is_below_other(plain[_folder(s)], own, roots)]


def _folder(status: FileStatus) -> str:
    return status.location.rpartition("/")[0]


def _is_below_other(folder: str, own: str, roots: set[str]) -> bool:
    while len(folder) > len(own):
        if folder in roots:
            return True
        folder = folder.rpartition("/")[0]
    return False


def _with_footers(
    io: FileIO,
    files: Sequence[SourceFile],
    converted: SourceSchema,
    properties: Mapping[str, str],
    progress: Progress,
) -> list[SourceFile]:
    def read(file: SourceFile) -> SourceFile:
        footer = read_footer(
            io, file.status, converted.schema, converted.spec, file.place.values, properties
        )
        return SourceFile(file.place, file.status, footer)

    with progress.task("reading footers", len(files), "files") as advance:
        done = []
        with ThreadPoolExecutor(THREADS, "icecomb-footer") as pool:
            for file in pool.map(read, files):
                done.append(file)
                advance(1)
        return done


def _rows(footer: Footer | None) -> int | None:
    return None if footer is None or footer.data_file is None else footer.data_file.record_count
