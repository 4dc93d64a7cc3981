"""A quarantine for files: they can be restored until it is emptied."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from icecomb.catalog.report.progress import SILENT, THREADS, each
from icecomb.format.errors import (
    FileAlreadyExistsError,
    FileIOError,
    IcecombError,
    NoSuchFileError,
    UnsupportedError,
)
from icecomb.format.storage.file_io import copy_file
from icecomb.format.storage.location import led_out

if TYPE_CHECKING:
    from icecomb.format.storage.file_io import FileIO

FOLDER: Final = "_icecomb_quarantine"
_NAME: Final = "%Y-%m-%dT%H%M%SZ"
_RUN: Final = re.compile(r"\d{4}-\d\d-\d\dT\d{6}Z")


@dataclass(frozen=True, slots=True)
class EmptiedQuarantine:
    """The result of emptying a quarantine.

    Attributes:
        deleted_files_count: Deleted files; in a dry run, files to delete.
        deleted_bytes_count: Bytes of these files.
        kept_files_count: Files that are not old enough.
        failed_files: Files that could not be deleted.
    """

    deleted_files_count: int
    deleted_bytes_count: int
    kept_files_count: int
    failed_files: tuple[str, ...] = ()


class Quarantine:
    """The folder for one run's files: `<table>/_icecomb_quarantine/<date>/<their path>`.

    Args:
        root: The folder that contains the files; the rest of their paths is kept.
        now: The time of the run, seconds since the epoch.
    """

    def __init__(self, io: FileIO, table: str, root: str, now: float) -> None:
        self._io = io
        self._root = root.rstrip("/")
        date = dt.datetime.fromtimestamp(now, dt.timezone.utc).strftime(_NAME)
        self.folder = f"{table.rstrip('/')}/{FOLDER}/{date}"

    def take(self, locations: Sequence[str], threads: int | None = None) -> list[str]:
        """Move existing files in; return those that could not be moved and are unchanged."""

        def move(location: str) -> str | None:
            try:
                self._move(location, self.quarantined(location))
            except NoSuchFileError:
                return None
            except (IcecombError, OSError):
                return location
            return None

        moved = each(SILENT, "move", "files", locations, move, threads or THREADS)
        return [location for location in moved if location is not None]

    def quarantined(self, location: str) -> str:
        """Return the location of a file in the quarantine."""
        if location.startswith(f"{self._root}/"):
            inner = location[len(self._root) + 1 :]
        else:
            inner = f"elsewhere/{re.sub(r'[^A-Za-z0-9._=/-]', '_', location).lstrip('/')}"
        # not by posixpath: names in an object store may begin with a slash
        return f"{self.folder}/{inner}"

    def _move(self, location: str, target: str) -> None:
        try:
            self._io.rename(location, target)
        except FileAlreadyExistsError:
            raise
        except (UnsupportedError, FileIOError):
            # other storage, or one without renames: the copy is complete before the file is deleted
            if led_out(self._root, [location], self._io.properties):
                raise
            copy_file(self._io, location, target)
            self._io.delete(location)


def empty_quarantine(
    io: FileIO, table: str, older_than_ms: int, *, dry_run: bool
) -> EmptiedQuarantine:
    """Delete the files of runs before a time from a table's quarantine.

    Args:
        older_than_ms: Milliseconds since the epoch; compared with the date of a run's folder.
        dry_run: Whether only to count.
    """
    root = f"{table.rstrip('/')}/{FOLDER}"
    due: dict[str, int] = {}
    kept = 0
    for run in io.entries(root).folders:
        if not _RUN.fullmatch(run):
            continue  # not icecomb's
        date = dt.datetime.strptime(run, _NAME).replace(tzinfo=dt.timezone.utc)
        files = list(io.list(f"{root}/{run}"))
        if date.timestamp() * 1000 >= older_than_ms:
            kept += len(files)
            continue
        due.update((file.location, file.size) for file in files)
    failed: list[str] = []
    if not dry_run:
        failed = delete_files(io, list(due))
        _delete_empty(io, root)
    for location in failed:
        del due[location]
    return EmptiedQuarantine(len(due), sum(due.values()), kept, tuple(failed))


def _delete_empty(io: FileIO, folder: str) -> None:
    for empty in io.folder_tree(folder):
        with suppress(NoSuchFileError):
            io.delete_folder(empty)


_BATCH: Final = 200


def delete_files(io: FileIO, locations: Sequence[str], threads: int | None = None) -> list[str]:
    """Delete files that exist, and return those that could not be deleted.

    Args:
        threads: Number of batches at once; by default one: a batch is deleted in bulk.
    """
    batches = [locations[at : at + _BATCH] for at in range(0, len(locations), _BATCH)]

    def delete(batch: Sequence[str]) -> Sequence[str]:
        try:
            io.delete(batch)
        except FileIOError as error:
            failed = error.context.get("failed")
            return failed if isinstance(failed, tuple) else batch
        return ()

    results = each(SILENT, "delete", "batches", batches, delete, threads or 1)
    return [location for failed in results for location in failed]
