"""Planning of a migration and of all its obstacles, which changes nothing."""

from __future__ import annotations

import sys
import time
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any, Final

import numpy as np

from icecomb.catalog.hive.thrift.entity import FieldSchema, HivePartition, HiveTable
from icecomb.catalog.migrate.choices import Choices
from icecomb.catalog.migrate.planning.entry_finding import (
    COLUMN_STATISTICS,
    entry_findings,
    lost_statistics,
    property_findings,
)
from icecomb.catalog.migrate.planning.migration_plan import MigrationPlan, PlannedSourceFiles
from icecomb.catalog.migrate.planning.obstacle import (
    FORMATS,
    NOT_IN_FILES,
    FileProblems,
    FileRemarks,
    avro_findings,
    default_findings,
    parquet_positions,
    schema_findings,
    table_findings,
)
from icecomb.catalog.migrate.planning.pace import Pace, WarmUp
from icecomb.catalog.migrate.source.avro_schema import (
    URL,
    avro_declaration,
    declared_schema,
    reading_schema,
)
from icecomb.catalog.migrate.source.column_default import column_defaults, lost_defaults
from icecomb.catalog.migrate.source.copy_statement import copy_remedy
from icecomb.catalog.migrate.source.footer import FooterReader
from icecomb.catalog.migrate.source.footer_row import (
    LISTED,
    PLANNED,
    FooterRow,
    remarks_of,
    spellings_of,
    unread_of,
)
from icecomb.catalog.migrate.source.partition_folders import (
    DigestSet,
    FolderStates,
    PartitionBytes,
    PartitionFolders,
)
from icecomb.catalog.migrate.source.source import (
    classes_of,
    format_of,
    iceberg_properties,
    null_name,
    orc_by_position,
    parquet_by_position,
    partition_folder,
    partition_name,
    skipped_rows,
    spark_findings,
    table_folder,
)
from icecomb.catalog.migrate.source.source_files import (
    AHEAD,
    PartitionFolder,
    PartitionListing,
    list_folder,
    plain_folders,
)
from icecomb.catalog.migrate.source.source_schema import narrow_columns, source_schema
from icecomb.catalog.migrate.source.spool import RowWriter, Spool
from icecomb.catalog.report.finding import Finding, Mentions, blocker, note, warning
from icecomb.catalog.report.progress import THREADS, Progress, each
from icecomb.format.arrow.batch_stream import pooled, thread_pool
from icecomb.format.errors import IcecombError, ValidationError
from icecomb.format.manifests.encoded_file import DataFileForm
from icecomb.format.manifests.manifest import FileFormat
from icecomb.format.rows.values.unread_field import UnreadField
from icecomb.format.shell_command import quoted_word
from icecomb.format.spec.metadata import new_format_version
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import V3_FORMAT_VERSION
from icecomb.format.sql_statement import printed_text
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus
from icecomb.format.storage.location import is_ambiguous

_NONE: Final[Mapping[str, str]] = {}
_PAGE: Final = 1_000
"""Number of partitions whose folders are compared at a time."""
_FIRST_LISTING: Final = WarmUp()


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
    properties: Mapping[str, str] = _NONE,
) -> MigrationPlan:
    """Plan the migration of a Hive table; change nothing, and report problems as findings.

    Args:
        partitions: The table's partitions, read only if the table itself could be migrated.
        footers: Whether to read file footers, not only the metastore and the folders.
        sample: Maximum number of footers to read, evenly spaced; None for all.
        properties: Properties that the Iceberg table will have besides those of the Hive table.
    """
    most = 0 if not footers else sys.maxsize if sample is None else sample
    survey = _Survey(io, table, choices, progress, threads, properties)
    return survey.plan(partitions, most)


class _Survey:
    """One survey of a table, which collects findings from all steps."""

    def __init__(  # noqa: PLR0917 - see `plan_source`
        self,
        io: FileIO,
        table: HiveTable,
        choices: Choices,
        progress: Progress,
        threads: int,
        properties: Mapping[str, str],
    ) -> None:
        self._io = io
        self._table = table
        self._choices = choices
        self._progress = progress
        self._threads = threads
        self._converted = source_schema(table, choices.timestamp)
        self._defaults = column_defaults(table)
        if new_format_version(properties) >= V3_FORMAT_VERSION:
            schema = self._defaults.in_schema(self._converted.schema)
            self._converted = replace(self._converted, schema=schema)
        self._packing = PartitionBytes(self._converted.spec, self._converted.schema)
        self._findings = [
            *table_findings(table, choices),
            *schema_findings(self._converted, choices),
            *default_findings(self._converted.schema, self._defaults),
            *property_findings({**iceberg_properties(table), **properties}),
        ]

    def plan(self, partitions: Iterable[HivePartition], footers: int) -> MigrationPlan:
        """Return the plan, reading at most ``footers`` footers."""
        table, converted = self._table, self._converted
        location = table.storage.location or ""
        plan = MigrationPlan(
            table.full_name, location, converted.schema, converted.spec, (), 0, PlannedSourceFiles()
        )
        if not self._has(NOT_IN_FILES):
            self._findings += spark_findings(table, self._io.properties)
            self._findings += entry_findings(table, converted, self._io.properties)
            started = time.monotonic()
            folders = self._folders(partitions)
            asked_s = time.monotonic() - started
            pace = Pace(_FIRST_LISTING)
            listing = self._listed(folders, pace)
            # The conversion reads partitions and listings once more.
            listed_s = pace.seconds(len(folders), self._threads)
            seconds: float | None = 2 * (asked_s + listed_s)
            form = DataFileForm(converted.spec, converted.schema)
            partitions_found = listing.existing if table.partition_keys else 0
            plan = replace(
                plan, partitions=partitions_found, folder_states=listing.states, form=form
            )
            if listing.files.rows:
                survey = FooterSurvey(self._reading(form), listing.files, listing.folders)
                reading = survey.read(footers, readable=not self._has({"format", "transactional"}))
                seconds = None if reading is None or seconds is None else seconds + reading
                self._findings += survey.findings()
                plan = replace(
                    plan,
                    files=survey.planned(listing.size),
                    spellings=tuple(survey.spellings()),
                    unread=tuple(survey.unread()),
                )
            plan = replace(plan, seconds=seconds)
        return replace(plan, findings=tuple(self._findings))

    def _folders(self, partitions: Iterable[HivePartition]) -> PartitionFolders:
        table = self._table
        folders = PartitionFolders(self._packing)
        ambiguous = Mentions()
        if is_ambiguous(table.storage.location or ""):
            ambiguous.add(table.storage.location or "")
        if not table.partition_keys:
            folders.extend(self._io, [table_folder(table)])
            folders.close()
            self._block_ambiguous(ambiguous)
            return folders
        formats, wrong, outside = Mentions(), Mentions(), Mentions()
        # Without a type for each key no value can be valid, and the column's finding says why.
        typed = len(self._converted.spec.fields) == len(table.partition_keys)
        notes = PartitionNotes(table)
        (own,) = plain_folders(self._io.properties, [table.storage.location or ""])
        left = iter(partitions)
        while page := list(islice(left, _PAGE)):
            found: list[PartitionFolder] = []
            for partition in page:
                name = partition_name(table, partition)
                notes.examine(name, partition)
                if not partition.storage.location:
                    continue  # reported as a finding
                folder = PartitionFolder(name, partition.storage.location, ())
                if typed:
                    try:
                        zone = self._choices.time_zone
                        folder = partition_folder(table, partition, self._converted, zone)
                    except ValidationError as error:
                        wrong.add(f"{name}: {error.message}")
                readable = format_of(partition.storage) is not None
                if not readable:
                    formats.add(f"{name} ({classes_of(partition.storage)})")
                positional = orc_by_position(partition)
                found.append(replace(folder, readable=readable, positional=positional))
            for folder, plain in zip(found, folders.extend(self._io, found), strict=True):
                if not plain.startswith(f"{own.rstrip('/')}/"):
                    outside.add(folder.name)
                if is_ambiguous(folder.location):
                    ambiguous.add(folder.location)
        folders.close()
        self._block_ambiguous(ambiguous)
        self._findings += notes.findings()
        self._findings += outside_findings(outside)
        if formats and not self._has({"format"}):
            self._block(
                "partition-format",
                f"{len(formats)} partitions are not {FORMATS}",
                copy_remedy(self._table),
                formats,
            )
        if wrong:
            self._block(
                "partition-value",
                f"{len(wrong)} partition values are not exact values of their column's type",
                "drop these partitions in Hive, or change the type of the partition column there",
                wrong,
            )
        shared = Mentions()
        for one, other in folders.sharing(self._io):
            shared.add(f"{one.name} and {other.name}")
        if shared:
            self._block(
                "shared-folder",
                f"{len(shared)} pairs of partitions share a folder: its rows would be in both",
                "drop one partition of each pair",
                shared,
            )
        return folders

    def _block_ambiguous(self, locations: Mentions) -> None:
        """Add a blocker: Hive reads object stores by Hadoop's paths, Iceberg's engines by keys."""
        if locations:
            self._block(
                "ambiguous-location",
                f"{len(locations)} locations have empty or dotted parts: Hive reads other folders "
                "there than Iceberg's engines would",
                "ALTER TABLE ... [PARTITION ...] SET LOCATION in Hive, without '//', '.' and '..'",
                locations,
            )

    def _listed(self, folders: PartitionFolders, pace: Pace) -> Listing:
        accept = self._choices.accept
        transactional = self._has({"transactional"})
        listing = Listing(folders, f"{(self._table.storage.location or '').rstrip('/')}/metadata/")
        missing, failed, deep = Mentions(), Mentions(), Mentions()
        first = ""
        empty = 0
        locations = folders.locations()
        for number, found in enumerate(self._listings(folders, pace)):
            if isinstance(found, IcecombError):
                first = first or found.message
                failed.add(found.message)
                listing.failed()
                continue
            empty += found.empty
            if not found.exists:
                missing.add(found.folder.name or found.folder.location)
            nested: Sequence[FileStatus] = ()
            # The deltas of a transactional table are subfolders, which its own finding reports.
            if found.nested and not transactional:
                nested = _of_no_other(self._io, found, locations)
                for status in nested:
                    deep.add(status.location)
            listing.add(number, found, nested if "subdirectories" in accept else ())
        listing.close()
        if failed:
            text = f"{len(failed)} folders cannot be read: {first}"
            self._block("unreadable-folder", text, "make them readable, then plan again", failed)
        if missing and not self._table.partition_keys:
            self._block(
                "missing-folder",
                "its folder does not exist",
                "restore it, or create it, for an empty table (hdfs dfs -mkdir -p "
                f"{quoted_word(self._table.storage.location or '')}); or drop the table in Hive",
                missing,
            )
        elif missing and "missing-partitions" not in accept:
            text = f"folders that do not exist: {len(missing)}"
            remedy = (
                "restore them, drop the partitions in Hive, or leave them out: `icecomb migrate "
                "apply --accept missing-partitions`, ignore_missing_files of CALL"
            )
            self._block("missing-folder", text, remedy, missing)
        elif missing:
            text = f"partitions without a folder, left out: {len(missing)}"
            self._findings.append(warning("missing-folder", text, "accepted", missing))
        if deep and "subdirectories" not in accept:
            text = (
                f"{len(deep)} files are in sub-folders, where Hive readers differ on whether "
                "they count"
            )
            remedy = (
                "move them up or away; `icecomb migrate apply --accept subdirectories` takes them "
                "over"
            )
            self._block("subdirectories", text, remedy, deep)
        elif deep:
            text = f"{len(deep)} files in sub-folders"
            self._findings.append(warning("subdirectories", text, "accepted", deep))
        if empty:
            text = f"{empty} empty files hold no rows"
            self._findings.append(note("empty-files", text, "left out"))
        twice = listing.twice()
        if twice and not self._has({"shared-folder"}):
            self._block(
                "shared-folder",
                f"{len(twice)} files were found twice: their rows would be there twice",
                "plan again; if it stays, drop the partition that is inside another one",
                twice,
            )
        return listing

    def _listings(
        self, folders: PartitionFolders, pace: Pace
    ) -> Iterator[PartitionListing | IcecombError]:
        """Yield the listings of folders, or errors for those that cannot be listed."""

        def attempt(folder: PartitionFolder) -> PartitionListing | IcecombError:
            try:
                return pace.timed(partial(list_folder, self._io, folder))
            except IcecombError as error:
                return error

        return each(
            self._progress, "listing", "partitions", folders, attempt, self._threads, ahead=AHEAD
        )

    def _reading(self, form: DataFileForm) -> Reading:
        table, declared = self._table, None
        if format_of(table.storage) is FileFormat.AVRO:
            try:
                declared = declared_schema(self._io, table)
                self._findings += avro_findings(self._converted, declared)
            except ValidationError as error:
                self._block("avro-schema", error.message, error.hint or "")
        reader = FooterReader(
            self._io,
            self._converted.schema,
            table.parameters,
            [column.name for column in table.storage.columns],
            reading_schema(declared, table),
            narrow=narrow_columns(table),
            defaults=lost_defaults(self._converted.schema, self._defaults),
            accepted=self._choices.accept,
        )
        return Reading(table, reader, form, self._progress, self._threads)

    def _has(self, codes: Collection[str]) -> bool:
        return any(finding.code in codes for finding in self._findings)

    def _block(self, code: str, message: str, remedy: str, places: Collection[str] = ()) -> None:
        self._findings.append(blocker(code, message, remedy, places))


def _of_no_other(io: FileIO, found: PartitionListing, others: DigestSet) -> list[FileStatus]:
    """Return the files in subfolders of a folder that are not in or below another partition's."""
    folders = list(dict.fromkeys(_folder(status) for status in found.nested))
    (own,) = plain_folders(io.properties, [found.folder.location])
    plain = dict(zip(folders, plain_folders(io.properties, folders), strict=True))
    below = {folder: _is_below_other(plain[folder], own, others) for folder in folders}
    return [status for status in found.nested if not below[_folder(status)]]


def _folder(status: FileStatus) -> str:
    return status.location.rpartition("/")[0]


def _is_below_other(folder: str, own: str, others: DigestSet) -> bool:
    while len(folder) > len(own):
        if folder in others:
            return True
        folder = folder.rpartition("/")[0]
    return False


class PartitionNotes:
    """Findings about partitions' entries, collected while read; only differences are kept."""

    def __init__(self, table: HiveTable) -> None:
        self._columns = _plain(table.storage.columns)
        self._by_position = parquet_by_position(table)
        self._formats: Counter[str] = Counter()
        self._schemas = Mentions()
        self._analyzed = Mentions()
        self._positions = Mentions()
        self._skipped = Mentions()
        self._homeless = Mentions()
        self._widened = Mentions()
        self._default = Mentions()
        texts = ("string", "char", "varchar")
        self._text_keys = [
            number
            for number, key in enumerate(table.partition_keys)
            if key.type.lower().startswith(texts)
        ]
        self._null = null_name(table)
        self._table = table
        self._avro = avro_declaration(table)
        self._avro_differs = Mentions()

    def examine(self, name: str, partition: HivePartition) -> None:
        """Examine one partition's entry."""
        storage = partition.storage
        self._formats[_format(storage.input_format)] += 1
        columns = _plain(storage.columns)
        if columns != self._columns:
            self._schemas.add(name)
            if format_of(storage) in {FileFormat.ORC, FileFormat.AVRO} and any(
                (column, "float") in columns for column, kind in self._columns if kind == "double"
            ):
                self._widened.add(name)
        if any(partition.values[number] == self._null for number in self._text_keys):
            self._default.add(name)
        if COLUMN_STATISTICS in partition.parameters.get("COLUMN_STATS_ACCURATE", ""):
            self._analyzed.add(name)
        if parquet_by_position(partition) and not self._by_position:
            self._positions.add(name)
        if skipped := skipped_rows(partition):
            self._skipped.add(f"{name}: {skipped}")
        if not storage.location:
            self._homeless.add(name)
        declared = avro_declaration(partition)
        if declared and declared != self._avro and format_of(storage) is FileFormat.AVRO:
            self._avro_differs.add(name)

    def findings(self) -> Iterable[Finding]:
        """Yield the findings."""
        if self._homeless:
            yield blocker(
                "partition-location",
                f"{len(self._homeless)} partitions have no folder in the metastore",
                "ALTER TABLE ... PARTITION (...) SET LOCATION in Hive, or drop them there",
                self._homeless,
            )
        if self._avro_differs:
            yield blocker(
                "avro-schema",
                f"{len(self._avro_differs)} partitions have an Avro schema of their own, by which "
                "Hive reads their files",
                self._avro_remedy(),
                self._avro_differs,
            )
        if self._positions:
            yield parquet_positions(self._positions)
        if self._skipped:
            yield blocker(
                "skipped-rows",
                f"{len(self._skipped)} partitions say that rows of each file are left out "
                "(skip.header.line.count, skip.footer.line.count), which Iceberg would show",
                "if they are rows: ALTER TABLE ... PARTITION (...) SET SERDEPROPERTIES to '0', or "
                "drop the partition and add it again; if not, copy the table in Hive",
                self._skipped,
            )
        if len(self._formats) > 1:
            counted = tuple(f"{count:,} {kind}" for kind, count in self._formats.most_common())
            yield note(
                "mixed-formats",
                f"its partitions are of {len(counted)} file formats: {', '.join(counted)}",
                "each file is taken over as what it is; new files are Parquet unless the table's "
                "write.format.default says otherwise",
                counted,
            )
        if self._schemas:
            yield warning(
                "mixed-schemas",
                f"{len(self._schemas)} partitions have other columns than the table",
                "Iceberg reads all files by the table's columns, where Hive shows null for what "
                "the partition's entry lacks: compare, or ALTER TABLE ... CASCADE first",
                self._schemas,
            )
        if self._widened:
            yield warning(
                "widened-float",
                f"{len(self._widened)} partitions have float where the table has double: of their "
                "ORC and Avro files Hive shows 1.1 where all readers of Iceberg show "
                "1.100000023841858",
                "both are the same float; ALTER TABLE ... CASCADE shows in Hive what Iceberg will",
                self._widened,
            )
        if self._default:
            yield note(
                "null-partition",
                f"{len(self._default)} partitions are named {self._null}: Hive shows that "
                "text in a column of texts, Iceberg null",
                "conditions on that text become IS NULL",
                self._default,
            )
        if self._analyzed:
            many = f"of {len(self._analyzed)} partitions each" if len(self._analyzed) > 1 else ""
            yield lost_statistics(many or "a partition", self._analyzed)

    def _avro_remedy(self) -> str:
        if self._avro is None:
            return copy_remedy(self._table)
        key, said = self._avro
        pair = f"'{key}'={printed_text(said)}" if key == URL else f"'{key}'='...'"
        return f"ALTER TABLE ... PARTITION (...) SET SERDEPROPERTIES ({pair}) in Hive, as the table"


def outside_findings(names: Collection[str]) -> Iterable[Finding]:
    """Yield the finding about partitions outside the table's folder."""
    if names:
        yield note(
            "outside-folder",
            f"{len(names)} partitions are outside the table's folder",
            "their files are taken over where they are; new ones go to the table's folder",
            names,
        )


def _plain(columns: Iterable[FieldSchema]) -> tuple[tuple[str, str], ...]:
    return tuple((one.name.lower(), one.type.lower().replace(" ", "")) for one in columns)


def _format(input_format: str | None) -> str:
    name = (input_format or "none").rpartition(".")[2]
    for kind in ("parquet", "orc", "avro", "rcfile", "sequencefile", "text", "json"):
        if kind in name.lower():
            return kind
    return name


_FIRST_FOOTER: Final = WarmUp()


class Listing:
    """The files in the folders of a table and its partitions.

    Args:
        own: A folder whose files do not count in the states.

    Attributes:
        states: The state of each folder.
        size: Total size of the files in bytes.
        existing: Number of folders that exist.
    """

    def __init__(self, folders: PartitionFolders, own: str) -> None:
        self.folders = folders
        self.states = FolderStates(folders, own)
        self.size = self.existing = 0
        self._writer = RowWriter(LISTED)
        self._hashes = array("q")

    @property
    def files(self) -> Spool:
        """The files, as rows."""
        return self._writer.spool

    def add(self, number: int, found: PartitionListing, nested: Iterable[FileStatus]) -> None:
        """Add the files of the next folder; `nested` are those of subfolders taken over, too."""
        self.states.add(found)
        if not found.exists:
            return
        self.existing += 1
        for status in (*found.files, *nested):
            self.size += status.size
            self._hashes.append(hash(status.location))
            row = (status.location, status.size, status.mtime_ms, status.file_id, number)
            self._writer.add(row)

    def failed(self) -> None:
        """Skip the next folder, which cannot be listed."""
        self.states.skip()

    def close(self) -> None:
        """Finish after all folders were listed."""
        self._writer.flush()

    def twice(self) -> Mentions:
        """Return the files that are listed more than once."""
        hashes = np.sort(np.frombuffer(self._hashes, np.int64))
        again = set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())
        found, seen = Mentions(), set()
        for batch in self.files if again else ():
            for location in batch.column("path").to_pylist():
                if hash(location) in again:
                    if location in seen:
                        found.add(location)
                    seen.add(location)
        return found


@dataclass(frozen=True, slots=True)
class Reading:
    """Settings for reading footers; `form` is the encoding of files for manifests."""

    table: HiveTable
    reader: FooterReader
    form: DataFileForm
    progress: Progress
    threads: int

    def read(
        self, partition: PartitionFolder, status: FileStatus, *, positional: bool
    ) -> FooterRow:
        """Read the footer of a file."""
        # A partition with invalid values has none that a file could contradict.
        spec = self.form.spec
        known = spec if len(partition.values) == len(spec.fields) else UNPARTITIONED_PARTITION_SPEC
        footer = self.reader.read(status, known, partition.values, positional=positional)
        return FooterRow.of(footer, self.form)


class FooterSurvey:
    """Survey of the footers of files."""

    def __init__(self, reading: Reading, files: Spool, folders: PartitionFolders) -> None:
        self._reading = reading
        self._files = files
        self._folders = folders
        self._by_position = orc_by_position(reading.table)
        self._planned: Spool | None = None
        self._rows: int | None = 0
        self._spellings: dict[str, None] = {}
        self._unread: dict[str, None] = {}
        self._zones: dict[str, Mentions] = {}
        self._problems = FileProblems()
        self._remarks = FileRemarks()
        self._notes: list[Finding] = []

    def read(self, most: int, *, readable: bool) -> float | None:
        """Read footers; return estimated seconds for all, None if none was read.

        Args:
            most: Maximum number of files, spread over the table.
            readable: Whether the files are of supported formats.
        """
        total, reading = self._files.rows, self._reading
        step = -(-total // most) if most else total + 1
        writer = RowWriter(PLANNED, "record")
        pace, chosen = Pace(_FIRST_FOOTER), 0

        def read(file: tuple[PartitionFolder, FileStatus]) -> FooterRow:
            return pace.timed(partial(self._footer, *file))

        task = reading.progress.task("reading footers", total // step, "files")
        with task as advance, thread_pool(reading.threads) as pool:
            at = 0
            for batch in self._files:
                rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                asked = self._chosen(rows, -at % step, step) if most and readable else {}
                at += len(rows)
                chosen += len(asked)
                footers = pooled(pool, read, asked.values(), AHEAD)
                for number, row in enumerate(rows):
                    footer = next(footers) if number in asked else None
                    self._take(row, footer, writer)
                    if footer is not None:
                        advance(1)
        writer.flush()
        self._planned = writer.spool
        if readable and step > 1:
            text = f"{chosen:,} of {total:,} footers were read" if chosen else "no footer was read"
            remedy = "plan without `--sample` and `--quick` reads all, as apply does"
            self._notes.append(note("files-not-read", text, remedy))
        return pace.seconds(total, reading.threads) if chosen else None

    def planned(self, size: int) -> PlannedSourceFiles:
        """Return the files; `size` is their total size in bytes."""
        spool = self._files if self._planned is None else self._planned
        rows = self._rows if self._planned is not None or not spool.rows else None
        return PlannedSourceFiles(self._folders, spool, size, rows)

    def findings(self) -> Iterator[Finding]:
        """Yield the findings about the files."""
        yield from self._problems.findings(self._reading.table)
        yield from self._notes
        yield from self._remarks.findings(self._reading.table)
        for zone, files in sorted(self._zones.items()):
            yield note(
                "writer-zones",
                f"{len(files)} files hold timestamps that Hive wrote and shows in {zone}: the "
                "table has the instants",
                "readers show them in a zone of their own; set that one to see what Hive shows",
                files,
            )

    def spellings(self) -> Iterator[Mapping[int, str]]:
        """Yield the distinct spellings of columns, in the order of files."""
        return map(spellings_of, self._spellings)

    def unread(self) -> Iterator[UnreadField]:
        """Yield the fields of files that the table lacks, in the order of files."""
        for text in self._unread:
            yield from unread_of(text)

    def _chosen(
        self, rows: Sequence[Any], first: int, step: int
    ) -> dict[int, tuple[PartitionFolder, FileStatus]]:
        """Return the files of a batch to read, with their folders, by their numbers in it."""
        chosen = {}
        for number in range(first, len(rows), step):
            *stated, at = rows[number]
            partition = self._folders[at]
            if partition.readable:
                chosen[number] = partition, FileStatus(*stated)
        return chosen

    def _footer(self, partition: PartitionFolder, status: FileStatus) -> FooterRow:
        positional = self._by_position or partition.positional
        return self._reading.read(partition, status, positional=positional)

    def _take(self, row: Sequence[Any], footer: FooterRow | None, writer: RowWriter) -> None:
        if footer is None:
            self._rows = None
            writer.add((*row, None, None))
            return
        writer.add((*row, footer.record, footer.rows))
        self._spellings[footer.spellings] = None
        if footer.unread:
            self._unread[footer.unread] = None
        if footer.zone:
            self._zones.setdefault(footer.zone, Mentions()).add(row[0])
        if footer.remarks:
            self._remarks.add(row[0], remarks_of(footer.remarks))
        if footer.problems:
            self._problems.add(row[0], footer.problems)
        if self._rows is not None:
            self._rows = None if footer.rows is None else self._rows + footer.rows
