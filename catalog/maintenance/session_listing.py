"""Listing of folders too large for one machine, by a session's executors."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pyarrow as pa

from icecomb.catalog.commit.version_name import METADATA_SUFFIXES
from icecomb.format.errors import ValidationError
from icecomb.format.operation.expiry.reachable_files import ReachableFiles
from icecomb.format.storage.file_system import FileStatus

if TYPE_CHECKING:
    from icecomb.catalog.maintenance.folder_listing import FolderListing, HiddenNames
    from icecomb.catalog.table.table import Table
    from icecomb.format.operation.expiry.location_keys import Spelling

LOCAL_LISTING: Final = 1_000_000
"""Files that this machine lists before it asks a session, if there is one."""
MANY: Final = 256
"""Number of folders to list in depth, one task each; fewer are listed level by level."""
_ALWAYS: Final = rf"(?s).*(?:{'|'.join(map(re.escape, METADATA_SUFFIXES))})"


class ListedEntry(NamedTuple):
    """A file or folder in a folder; `mtime_ms` is its last change, in ms since the epoch."""

    folder: str
    name: str
    mtime_ms: int
    is_folder: bool


@dataclass(frozen=True, slots=True)
class ListingJob:
    """The arguments of a listing by executors.

    Attributes:
        folders: Locations of folders, and their paths as `known` has them.
        deep: Whether inner folders are listed, too; otherwise they are returned.
        hidden: Folders with these names are returned, but not listed; files are left out.
        always: A regular expression of file names that are returned even if known.
        known: A local file of paths, one a line; these files need not be returned.
    """

    folders: Sequence[tuple[str, str]]
    deep: bool
    hidden: HiddenNames
    always: str
    known: Path


class FolderEngine(Protocol):
    """A lister of folders outside of this process."""

    def entries(self, job: ListingJob) -> Iterator[ListedEntry]:
        """Yield the contents of folders."""


def list_by_session(
    table: Table,
    root: str,
    folders: Sequence[str],
    listing: FolderListing,
    *,
    session: FolderEngine,
    spelling: Spelling,
) -> None:
    """Add all files below some folders to a listing, except those that the table needs.

    This only saves sending them: the receiver of the listing checks each file anyway.
    """
    with tempfile.NamedTemporaryFile(prefix="icecomb-listing-") as file:
        known = Path(file.name)
        _write_known(table, root, known, spelling)
        waiting = list(folders)
        while waiting:
            paths = spelling.paths(pa.array(waiting, pa.string()))
            deep = len(waiting) >= MANY
            given = list(zip(waiting, paths, strict=True))
            job = ListingJob(given, deep, listing.hidden, _ALWAYS, known)
            waiting = []
            for entry in session.entries(job):
                if entry.is_folder:
                    below = listing.enter(entry.folder, [entry.name])
                    waiting += () if deep else below
                else:
                    location = f"{entry.folder}/{entry.name}"
                    listing.take(entry.folder, [FileStatus(location, 0, entry.mtime_ms)])


def _write_known(table: Table, root: str, file: Path, spelling: Spelling) -> None:
    """Write the paths of files that the table needs under its folder's scheme and authority."""
    (prefix,) = spelling.keys(pa.array([root], pa.string())).prefixes[0]
    with file.open("w", encoding="utf-8") as out:

        def tell(locations: pa.Array) -> None:
            prefixes, rows = spelling.keys(locations).prefixes
            for path, row in zip(spelling.paths(locations), rows.tolist(), strict=True):
                if prefixes[row] == prefix and "\n" not in path and "\r" not in path:
                    out.write(path + "\n")

        needed = ReachableFiles(table.io, spelling, tell)
        needed.add_table(table.metadata, table.metadata_location)


def check_possible(session: FolderEngine | None) -> None:
    """Refuse executors without a session."""
    if session is None:
        raise ValidationError(
            "Spark can list files only where a session calls",
            hint="CALL lake.system.remove_orphan_files(table => 'db.t', engine => 'spark').",
        )
