"""What a migration would do and all that stands in its way; looking changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from icecomb.catalog.finding import blocker, note, warning
from icecomb.catalog.hive.thrift.entity import HivePartition, HiveTable
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.footer import Footer, read_footer
from icecomb.catalog.migrate.obstacle import (
    FORMAT_HINT,
    NOT_IN_FILES,
    file_findings,
    schema_findings,
    table_findings,
)
from icecomb.catalog.migrate.source import (
    is_parquet,
    partition_name,
    partition_place,
    table_place,
)
from icecomb.catalog.migrate.source_files import Place, PlaceFiles, list_places
from icecomb.catalog.migrate.source_schema import source_schema
from icecomb.catalog.progress import SILENT, THREADS, Progress, each
from icecomb.catalog.takeover import TakeoverPlan
from icecomb.format.errors import IcecombError, ValidationError
from icecomb.format.manifests.manifest import DataFile
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
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
    footer: Footer | None = None


@dataclass(frozen=True, slots=True)
class MigrationPlan(TakeoverPlan):
    """What would be done to one table.

    Attributes:
        partitions: how many partitions are taken over.
        files: the files to be taken over.
        listed: all that was found in the folders of the table.
    """

    partitions: int
    files: tuple[SourceFile, ...]
    listed: tuple[PlaceFiles, ...] = ()

    @property
    def rows(self) -> int | None:
        """How many rows the files hold, None when footers were not read."""
        counts = [_rows(file.footer) for file in self.files]
        return None if None in counts else sum(count for count in counts if count is not None)

    @property
    def data_files(self) -> Iterator[DataFile]:
        """The files as manifests will have them, as far as footers were read."""
        for file in self.files:
            if file.footer is not None and file.footer.data_file is not None:
                yield file.footer.data_file

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
        threads: how many folders or footers are read at once.

    Raises:
        FileIOError: a folder cannot be listed.
    """
    return _Survey(io, table, choices, progress, threads).plan(partitions, footers=footers)


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
        self._foreign: set[str] = set()  # names of partitions whose files are not read
        self._converted = source_schema(table, choices.timestamp)
        self._findings = [*table_findings(table, choices), *schema_findings(self._converted)]

    def plan(self, partitions: Iterable[HivePartition], *, footers: bool) -> MigrationPlan:
        listed: list[PlaceFiles] = []
        files: list[SourceFile] = []
        if not self._has(NOT_IN_FILES):
            listed = self._listed(self._places(partitions))
            files = [SourceFile(found.place, status) for found in listed for status in found.files]
            if footers:
                files = self._with_footers(files)
            elif files:
                self._findings.append(
                    note("files-not-read", "no footer was read", "plan without --quick reads all")
                )
        return MigrationPlan(
            self._table.full_name,
            self._table.storage.location or "",
            self._converted.schema,
            self._converted.spec,
            tuple(self._findings),
            len(listed) if self._table.partition_keys else 0,
            tuple(files),
            self._found,
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
        for partition in partitions:
            name, kind = partition_name(table, partition), partition.storage.input_format
            place = Place(name, partition.storage.location or "", ())
            if not is_parquet(kind):
                formats.append(f"{name} ({kind})")
                self._foreign.add(place.name)
            if typed:
                try:
                    zone = self._choices.time_zone
                    place = partition_place(table, partition, self._converted, zone)
                except ValidationError as error:
                    wrong.append(f"{name}: {error.message}")
            places.append(place)
        if formats and not self._has({"format"}):
            self._block(
                "partition-format",
                f"{len(formats)} partitions are not Parquet",
                FORMAT_HINT,
                formats,
            )
        if wrong:
            self._block(
                "partition-value",
                f"{len(wrong)} partition values are no exact values of their column's type",
                "drop these partitions in Hive, or change the type of the partition column there",
                wrong,
            )
        if shared := _sharing(self._io, places):
            self._block(
                "shared-folder",
                f"{len(shared)} pairs of partitions share a folder: its rows would be in both",
                "drop one partition of each pair",
                shared,
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
        roots = {*_plain_folders(self._io, (place.location for place in places))}
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

    def _with_footers(self, files: Sequence[SourceFile]) -> list[SourceFile]:
        schema, spec = self._converted.schema, self._converted.spec
        properties = self._table.parameters
        whole = self._has({"format", "transactional"})

        def read(file: SourceFile) -> SourceFile:
            if whole or file.place.name in self._foreign:
                return file
            # A partition whose values are wrong has none that a file could contradict.
            values = file.place.values
            known = spec if len(values) == len(spec.fields) else UNPARTITIONED_PARTITION_SPEC
            footer = read_footer(self._io, file.status, schema, known, values, properties)
            return replace(file, footer=footer)

        found = list(each(self._progress, "reading footers", "files", files, read, self._threads))
        self._findings += file_findings(
            (file.status.location, problem)
            for file in found
            if file.footer
            for problem in file.footer.problems
        )
        return found

    def _has(self, codes: Collection[str]) -> bool:
        return any(finding.code in codes for finding in self._findings)

    def _block(self, code: str, message: str, remedy: str, places: Sequence[str] = ()) -> None:
        self._findings.append(blocker(code, message, remedy, tuple(places)))


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


def _rows(footer: Footer | None) -> int | None:
    return None if footer is None or footer.data_file is None else footer.data_file.record_count
