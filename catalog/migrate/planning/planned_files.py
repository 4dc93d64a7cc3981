"""The files of a plan, any number of them, with the contents of their footers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from icecomb.catalog.migrate.source.footer_row import PLANNED
from icecomb.catalog.migrate.source.source_files import PartitionFolder
from icecomb.catalog.migrate.source.spool import Spool
from icecomb.format.errors import MigrationError
from icecomb.format.manifests.encoded_file import DataFileForm, EncodedFile
from icecomb.format.storage.file_system import FileStatus


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
