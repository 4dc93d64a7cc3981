"""A migration plan: an immutable, self-contained value, with any number of files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from icecomb.catalog.migrate.source.footer_row import PLANNED
from icecomb.catalog.migrate.source.partition_folders import FolderStates
from icecomb.catalog.migrate.source.source_files import PartitionFolder
from icecomb.catalog.migrate.source.spool import Spool
from icecomb.catalog.report.finding import blocker
from icecomb.catalog.table.takeover import TakeoverPlan
from icecomb.format.errors import IcecombError, MigrationError
from icecomb.format.manifests.encoded_file import DataFileForm, EncodedFile, EncodedFiles
from icecomb.format.rows.values.unread_field import UnreadField
from icecomb.format.shell_command import shell_command
from icecomb.format.spec.partition import UNPARTITIONED_PARTITION_SPEC
from icecomb.format.spec.schema import Schema
from icecomb.format.storage.file_system import FileStatus

FAILED: Final = "not-planned"
"""The code of the blocker of a table that could not be examined."""
ALREADY: Final = "already-iceberg"
"""The code of the note about a table that is an Iceberg table already."""


@dataclass(frozen=True, slots=True)
class MigrationPlan(TakeoverPlan):
    """The plan of one table's migration.

    Attributes:
        partitions: Number of partitions taken over.
        files: The files to take over.
        folder_states: The state of the folders when they were listed; None without folders.
        form: The encoding of the files for manifests; None if none was examined.
        spellings: The distinct spellings of columns in files.
        unread: The fields of files that the table lacks, each once.
        seconds: Estimated duration of apply, from that of planning and, if not all footers were
            read, from those that were; None if none was.
    """

    partitions: int
    files: PlannedSourceFiles
    folder_states: FolderStates | None = None
    form: DataFileForm | None = None
    spellings: tuple[Mapping[int, str], ...] = ()
    unread: tuple[UnreadField, ...] = ()
    seconds: float | None = None

    @property
    def verdict(self) -> str:
        """The verdict.

        ``ready``, ``blocked``, ``already`` of an Iceberg table, or ``failed`` if the table could
        not be examined.
        """
        codes = {finding.code for finding in self.findings}
        if ALREADY in codes:
            return "already"
        return "failed" if FAILED in codes else "blocked" if self.blockers else "ready"

    @property
    def rows(self) -> int | None:
        """Number of rows in the files; None if footers were not read."""
        return self.files.rows

    @property
    def encoded(self) -> EncodedFiles:
        """The files encoded for manifests.

        Raises:
            MigrationError: If their footers were not read.
        """
        if self.form is None:
            raise MigrationError(f"The files of {self.table} were not read", hint="Plan again.")
        return self.files.encoded(self.form)

    @property
    def size(self) -> int:
        """Total size of the files in bytes."""
        return self.files.size

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        return {
            "table": self.table,
            "location": self.location,
            "verdict": self.verdict,
            "blocked": bool(self.blockers),
            "partitions": self.partitions,
            "files": len(self.files),
            "bytes": self.size,
            "rows": self.rows,
            "seconds": None if self.seconds is None else round(self.seconds, 1),
            "schema": self.schema.to_json(),
            "partition-spec": self.spec.to_json(),
            "findings": [finding.to_json() for finding in self.findings],
        }


def failed_plan(table: str, error: Exception) -> MigrationPlan:
    """Return the plan of a table that could not be examined: its one blocker says why."""
    if isinstance(error, IcecombError):
        message, remedy = error.message, error.hint
    else:
        message, remedy = f"{type(error).__name__}: {error}", None
    finding = blocker(
        FAILED, message, remedy or f"{shell_command('doctor', table)} examines its entry"
    )
    return MigrationPlan(
        table, "", Schema(), UNPARTITIONED_PARTITION_SPEC, (finding,), 0, PlannedSourceFiles()
    )


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to take over.

    Attributes:
        rows: Number of rows in its footer; None if it was not read, or does not say.
    """

    partition: PartitionFolder
    status: FileStatus
    rows: int | None = None


class PlannedSourceFiles(Collection[SourceFile]):
    """The files to take over, which can be iterated any number of times.

    Args:
        spool: The files, as rows.
        size: Total size in bytes.
        rows: Total number of rows; None if it is not known for all files.
    """

    def __init__(
        self,
        folders: Sequence[PartitionFolder] = (),
        spool: Spool | None = None,
        size: int = 0,
        rows: int | None = 0,
    ) -> None:
        self._folders = folders
        self._spool = Spool(PLANNED) if spool is None else spool
        self.size = size
        self.rows = rows

    def __len__(self) -> int:
        """Return the number of files."""
        return self._spool.rows

    def __iter__(self) -> Iterator[SourceFile]:
        """Yield the files, in the order of their folders."""
        for batch in self._spool:
            names = ("place", "path", "size", "mtime", "file_id")
            columns = [batch.column(name).to_pylist() for name in names]
            counts = batch.column("rows").to_pylist() if "rows" in batch.schema.names else None
            for at, (folder, *stated) in enumerate(zip(*columns, strict=True)):
                rows = counts[at] if counts else None
                yield SourceFile(self._folders[folder], FileStatus(*stated), rows)

    def __contains__(self, file: object) -> bool:
        """Return whether a file is one of them."""
        return any(one == file for one in self)

    def statuses(self) -> Iterator[list[FileStatus]]:
        """Yield pages of the files' statuses in storage when they were planned."""
        for batch in self._spool:
            columns = [batch.column(name).to_pylist() for name in batch.schema.names[:4]]
            yield [FileStatus(*stated) for stated in zip(*columns, strict=True)]

    def encoded(self, form: DataFileForm) -> EncodedPlannedFiles:
        """Return the files encoded for manifests."""
        return EncodedPlannedFiles(form, self._folders, self._spool)


@dataclass(frozen=True)
class EncodedPlannedFiles:
    """The files of a plan, encoded for manifests; see `EncodedFiles`."""

    form: DataFileForm
    folders: Sequence[PartitionFolder]
    spool: Spool

    def __iter__(self) -> Iterator[EncodedFile]:
        """Yield the files, whose footers must all have been read."""
        last, values = -1, tuple[Any, ...]()
        for batch in self.spool:
            names = ("place", "record", "rows", "size", "path")
            columns = [batch.column(name).to_pylist() for name in names]
            for folder, record, rows, size, path in zip(*columns, strict=True):
                if record is None or rows is None:
                    raise MigrationError(f"The footer of {path} was not read", hint="Plan again.")
                if folder != last:
                    last, values = folder, self.folders[folder].values
                yield EncodedFile(record, values, rows, size)
