"""Survey of a table's files and their footers, kept on the local disk rather than in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from icecomb.catalog.hive.thrift.entity import HiveTable
from icecomb.catalog.migrate.planning.migration_plan import PlannedSourceFiles
from icecomb.catalog.migrate.planning.obstacle import FileProblems, FileRemarks
from icecomb.catalog.migrate.planning.pace import Pace, WarmUp
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
    FolderStates,
    PartitionFolders,
)
from icecomb.catalog.migrate.source.source import orc_by_position
from icecomb.catalog.migrate.source.source_files import AHEAD, ListedFolder, PartitionFolder
from icecomb.catalog.migrate.source.spool import RowWriter, Spool
from icecomb.catalog.report.finding import Finding, Mentions, note
from icecomb.catalog.report.progress import Progress
from icecomb.format.arrow.batch_stream import pooled, thread_pool
from icecomb.format.manifests.encoded_file import DataFileForm
from icecomb.format.rows.values.unread_field import UnreadField
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.storage.file_system import FileStatus

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

    def add(self, number: int, found: ListedFolder, nested: Iterable[FileStatus]) -> None:
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
