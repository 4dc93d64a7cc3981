"""What a migration would do and all that stands in its way; looking changes nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from icecomb.catalog.finding import blocker, note, warning
from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.avro_schema import declared_schema, reading_schema
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.copy_statement import copy_remedy
from icecomb.catalog.migrate.entry_finding import entry_findings
from icecomb.catalog.migrate.footer import Footer, FooterReader
from icecomb.catalog.migrate.migration_plan import MigrationPlan, SourceFile
from icecomb.catalog.migrate.obstacle import (
    FORMATS,
    NOT_IN_FILES,
    avro_findings,
    file_findings,
    schema_findings,
    table_findings,
)
from icecomb.catalog.migrate.partition_finding import PartitionNotes, outside_findings
from icecomb.catalog.migrate.source import (
    format_of,
    orc_by_position,
    partition_name,
    partition_place,
    table_place,
)
from icecomb.catalog.migrate.source_files import (
    Place,
    PlaceFiles,
    list_places,
    plain_folders,
    shared_folders,
)
from icecomb.catalog.migrate.source_schema import source_schema
from icecomb.catalog.progress import SILENT, THREADS, Progress, each
from icecomb.format.errors import IcecombError, ValidationError
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus


def plan_source(
    io: FileIO,
    table: HiveTable,
    partitions: Iterable[HivePartition],
    choices: Choices,
    progress: Progress,
    *,
    footers: bool = True,
    sample: int | None = None,
    threads: int = THREADS,
) -> MigrationPlan:
    """Plan the migration of a Hive table; nothing is changed and problems are findings, not errors.

    Args:
        io: reads the files.
        table: the Hive table.
        partitions: its partitions, read only when the table itself could be migrated.
        choices: what the user chose.
        progress: told of partitions and files looked at.
        footers: whether to read every file's footer; without, only the metastore and the folders
            are looked at.
        sample: read so many footers only, of files all over the table.
        threads: how many folders or footers are read at once.

    Raises:
        FileIOError: a folder cannot be listed.
    """
    most = 0 if not footers else sys.maxsize if sample is None else sample
    return _Survey(io, table, choices, progress, threads).plan(partitions, most)


class _Survey:
    """One look at a table; what any step finds is kept."""

    def __init__(
        self, io: FileIO, table: HiveTable, choices: Choices, progress: Progress, threads: int
    ) -> None:
        self._io = io
        self._table = table
        self._choices = choices
        self._progress = progress
        self._threads = threads
        self._found: tuple[PlaceFiles, ...] = ()
        self._foreign: set[Place] = set()  # partitions whose files are not read
        self._positional: set[Place] = set()  # partitions whose entries ask for positions in ORC
        self._converted = source_schema(table, choices.timestamp)
        self._findings = [*table_findings(table, choices), *schema_findings(self._converted)]

    def plan(self, partitions: Iterable[HivePartition], footers: int) -> MigrationPlan:
        """The plan; of the files, so many footers at most are read."""
        listed: list[PlaceFiles] = []
        files: list[SourceFile] = []
        seconds: float | None = None
        if not self._has(NOT_IN_FILES):
            self._findings += entry_findings(self._table, self._converted, self._io.properties)
            started = time.monotonic()
            listed = self._listed(self._places(partitions))
            # The turn asks for partitions and files once more.
            seconds = 2 * (time.monotonic() - started)
            files = [SourceFile(found.place, status) for found in listed for status in found.files]
            if files:
                files, reading = self._with_footers(files, footers)
                seconds = None if reading is None else seconds + reading
        return MigrationPlan(
            self._table.full_name,
            self._table.storage.location or "",
            self._converted.schema,
            self._converted.spec,
            tuple(self._findings),
            len(listed) if self._table.partition_keys else 0,
            tuple(files),
            self._found,
            seconds,
        )

    def _places(self, partitions: Iterable[HivePartition]) -> list[Place]:
        table = self._table
        if not table.partition_keys:
            return [table_place(table)]
        places: list[Place] = []
        formats: list[str] = []
        wrong: list[str] = []
        # Without a type for each key no value can be right, and the column's finding says why.
        typed = len(self._converted.spec.fields) == len(table.partition_keys)
        seen = PartitionNotes(table)
        for partition in partitions:
            name, kind = partition_name(table, partition), partition.storage.input_format
            seen.look(name, partition)
            if not partition.storage.location:
                continue  # which is a finding
            place = Place(name, partition.storage.location, ())
            if typed:
                try:
                    zone = self._choices.time_zone
                    place = partition_place(table, partition, self._converted, zone)
                except ValidationError as error:
                    wrong.append(f"{name}: {error.message}")
            if format_of(kind) is None:
                formats.append(f"{name} ({kind})")
                self._foreign.add(place)
            if orc_by_position(partition):
                self._positional.add(place)
            places.append(place)
        self._findings += seen.findings()
        self._findings += outside_findings(_inside(self._io, table.storage.location or "", places))
        if formats and not self._has({"format"}):
            self._block(
                "partition-format",
                f"{len(formats)} partitions are not {', '.join(FORMATS[:-1])} or {FORMATS[-1]}",
                copy_remedy(self._table),
                formats,
            )
        if wrong:
            self._block(
                "partition-value",
                f"{len(wrong)} partition values are no exact values of their column's type",
                "drop these partitions in Hive, or change the type of the partition column there",
                wrong,
            )
        if shared := shared_folders(self._io, [place.location for place in places]):
            self._block(
                "shared-folder",
                f"{len(shared)} pairs of partitions share a folder: its rows would be in both",
                "drop one partition of each pair",
                [f"{places[one].name} and {places[other].name}" for one, other in shared],
            )
        return places

    def _listed(self, places: Sequence[Place]) -> list[PlaceFiles]:
        accept = self._choices.accept
        listed = self._readable(places)
        self._found = tuple(listed)
        missing = [found.place.name or found.place.location for found in listed if not found.exists]
        if missing and not ("missing-partitions" in accept and places[0].name):
            text = f"folders that do not exist: {len(missing)}"
            remedy = "restore them, drop the partitions in Hive, or --accept missing-partitions"
            self._block("missing-folder", text, remedy, missing)
        elif missing:
            text = f"partitions without a folder, left out: {len(missing)}"
            self._findings.append(warning("missing-folder", text, "accepted", tuple(missing)))
        roots = {*plain_folders(self._io, (place.location for place in places))}
        nested = {found.place: _of_no_other(self._io, found, roots) for found in listed}
        deep = [status.location for some in nested.values() for status in some]
        if self._has({"transactional"}):
            deep = []  # its deltas are sub-folders, which is what that finding is about
        if deep and "subdirectories" not in accept:
            text = (
                f"{len(deep)} files lie in sub-folders, where Hive readers differ whether they "
                "count"
            )
            remedy = "move them up or away, or --accept subdirectories to take them over"
            self._block("subdirectories", text, remedy, deep)
        elif deep:
            text = f"{len(deep)} files in sub-folders"
            self._findings.append(warning("subdirectories", text, "accepted", tuple(deep)))
            listed = [replace(f, files=(*f.files, *nested[f.place]), nested=()) for f in listed]
        if empty := sum(found.empty for found in listed):
            text = f"{empty} empty files hold no rows"
            self._findings.append(note("empty-files", text, "left out"))
        return [found for found in listed if found.exists]

    def _readable(self, places: Sequence[Place]) -> list[PlaceFiles]:
        """What is in the folders that can be listed; the others are a finding."""
        try:
            return list_places(self._io, places, self._progress, self._threads)
        except IcecombError:
            pass  # somebody's folder: which ones is found out one by one

        def attempt(place: Place) -> PlaceFiles | IcecombError:
            try:
                return list_places(self._io, [place], SILENT, 1)[0]
            except IcecombError as error:
                return error

        tried = list(each(self._progress, "listing", "partitions", places, attempt, self._threads))
        failed = [one.message for one in tried if isinstance(one, IcecombError)]
        if failed:
            text = f"{len(failed)} folders cannot be read: {failed[0]}"
            self._block("unreadable-folder", text, "make them readable, then plan again", failed)
        return [one for one in tried if not isinstance(one, IcecombError)]

    def _with_footers(
        self, files: Sequence[SourceFile], most: int
    ) -> tuple[list[SourceFile], float | None]:
        """The files with their footers, and about how many seconds reading all of them takes."""
        spec, reader = self._converted.spec, self._footer_reader()
        every = orc_by_position(self._table)
        step = -(-len(files) // most) if most else len(files) + 1
        # The files of a format that is not taken over have a finding already.
        readable = not self._has({"format", "transactional"})
        chosen = [
            at
            for at in (range(0, len(files), step) if most and readable else ())
            if files[at].place not in self._foreign
        ]

        def read(at: int) -> Footer:
            # A partition whose values are wrong has none that a file could contradict.
            status, values = files[at].status, files[at].place.values
            known = spec if len(values) == len(spec.fields) else UNPARTITIONED_PARTITION_SPEC
            positional = every or files[at].place in self._positional
            return reader.read(status, known, values, positional=positional)

        started = time.monotonic()
        found = list(files)
        footers = each(self._progress, "reading footers", "files", chosen, read, self._threads)
        for at, footer in zip(chosen, footers, strict=True):
            found[at] = replace(found[at], footer=footer)
        self._findings += file_findings(
            self._table,
            (
                (file.status.location, problem)
                for file in found
                if file.footer
                for problem in file.footer.problems
            ),
        )
        if readable and step > 1:
            text = f"{len(chosen):,} of {len(files):,} footers were read" if chosen else ""
            self._findings.append(
                note(
                    "files-not-read",
                    text or "no footer was read",
                    "plan without --sample and --quick reads all, as apply does",
                )
            )
        if not chosen:
            return found, None
        return found, (time.monotonic() - started) * len(files) / len(chosen)

    def _footer_reader(self) -> FooterReader:
        table, declared = self._table, None
        if format_of(table.storage.input_format) is FileFormat.AVRO:
            try:
                declared = declared_schema(self._io, table)
                self._findings += avro_findings(self._converted, declared)
            except ValidationError as error:
                self._block("avro-schema", error.message, error.hint or "")
        return FooterReader(
            self._io,
            self._converted.schema,
            table.parameters,
            [column.name for column in table.storage.columns],
            reading_schema(declared, table),
        )

    def _has(self, codes: Collection[str]) -> bool:
        return any(finding.code in codes for finding in self._findings)

    def _block(self, code: str, message: str, remedy: str, places: Sequence[str] = ()) -> None:
        self._findings.append(blocker(code, message, remedy, tuple(places)))


def _of_no_other(io: FileIO, found: PlaceFiles, roots: set[str]) -> list[FileStatus]:
    """The files in sub-folders of a place that are no folders of other places, nor below one."""
    folders = list(dict.fromkeys(_folder(status) for status in found.nested))
    (own,) = plain_folders(io, [found.place.location])
    plain = dict(zip(folders, plain_folders(io, folders), strict=True))
    return [s for s in found.nested if not _is_below_other(plain[_folder(s)], own, roots)]


def _inside(io: FileIO, root: str, places: Sequence[Place]) -> Iterator[tuple[str, bool]]:
    """The names of partitions, and whether their folders are below the table's."""
    own, *folders = plain_folders(io, [root, *(place.location for place in places)])
    for place, folder in zip(places, folders, strict=True):
        yield place.name, folder.startswith(f"{own.rstrip('/')}/")


def _folder(status: FileStatus) -> str:
    return status.location.rpartition("/")[0]


def _is_below_other(folder: str, own: str, roots: set[str]) -> bool:
    while len(folder) > len(own):
        if folder in roots:
            return True
        folder = folder.rpartition("/")[0]
    return False
