"""All files below a folder, listed many folders at once, and other tables found among them.

Folders too large for one machine are listed by a session's executors.
"""

from __future__ import annotations

import logging
import re
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import pyarrow as pa

from icecomb.catalog.report.progress import THREADS
from icecomb.format.arrow.batch_stream import thread_pool
from icecomb.format.operation.expiry.reachable_files import ReachableFiles
from icecomb.format.printable_text import printable
from icecomb.format.spec.metadata_file import METADATA_SUFFIXES
from icecomb.format.storage.file_system import DRAFT_PATTERN, FileStatus, check_levels, is_draft

if TYPE_CHECKING:
    from icecomb.catalog.table.table import Table
    from icecomb.format.operation.expiry.location_keys import Spelling
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.storage.file_io import FileIO
    from icecomb.format.storage.file_system import FolderEntries

_LOG: Final = logging.getLogger(__name__)
_BATCH: Final = 50_000
_FORMATS: Final = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table"}
_PAIMON: Final = re.compile(r"schema-\d+")
LOCAL_LISTING: Final = 1_000_000
"""Files that this machine lists before it asks a session, if there is one."""
MANY: Final = 256
"""Number of folders to list in depth, one task each; fewer are listed level by level."""
_ALWAYS: Final = rf"(?s).*(?:{'|'.join(map(re.escape, METADATA_SUFFIXES))})"


@dataclass(frozen=True, slots=True)
class HiddenNames:
    """Names of files and folders to skip, as in Iceberg.

    Attributes:
        folders: Matches names that begin with `_` or `.`, except those of partition fields named
            so; a regular expression that Python and Java read alike, as the next is.
        files: Matches these names, too, except those of drafts and of metadata files.
    """

    folders: str
    files: str

    @classmethod
    def of(cls, specs: Iterable[PartitionSpec]) -> HiddenNames:
        """Return the hidden names of a table."""
        names = {field.name for spec in specs for field in spec.fields}
        shown = [re.escape(f"{name}=") for name in sorted(names) if name[:1] in {"_", "."}]
        but = f"(?!{'|'.join(shown)})" if shown else ""
        metadata = "|".join(map(re.escape, METADATA_SUFFIXES))
        files = f"(?s)(?!.*(?:{metadata})$)(?!{DRAFT_PATTERN}$){but}[_.].*"
        return cls(f"(?s){but}[_.].*", files)

    def __contains__(self, name: str) -> bool:
        return re.fullmatch(self.folders, name) is not None


class FolderListing:
    """Files, and the folders of other tables among them.

    Attributes:
        metadata_files: Files named like metadata files of tables, and their times.
        others: Folders of tables of other formats, and their kinds.
    """

    def __init__(self, hidden: HiddenNames) -> None:
        self.hidden = hidden
        self.count = 0
        self._unnamed: list[str] = []
        self._locations: list[str] = []
        self._times: list[int | None] = []
        self._chunks: list[pa.RecordBatch] = []
        self.metadata_files: dict[str, int] = {}
        self.others: dict[str, str] = {}

    def batches(self) -> list[pa.RecordBatch]:
        """Return all files: `location`, and `mtime_ms` in epoch milliseconds, null if unknown.

        Those with names that are not UTF-8 are left out, and a warning tells of them.
        """
        if self._unnamed:
            _LOG.warning(
                "files and folders whose names are not UTF-8 are left alone: %d, such as %s",
                len(self._unnamed),
                printable(self._unnamed[0]),
            )
        self._seal()
        return self._chunks

    def name(self, files: Iterable[tuple[str, int | None]]) -> FolderListing:
        """Add files that another program listed, hidden ones too."""
        for location, mtime_ms in files:
            if not self._has_name(location):
                continue
            above, _, name = location.rpartition("/")
            self._notice(above, name, location, mtime_ms or 0)
            self._keep(location, mtime_ms)
        return self

    def walk(self, io: FileIO, folder: str, limit: int | None = None) -> list[str]:
        """Add all files below a folder; return the folders that the limit left unlisted.

        Args:
            limit: Number of files after which no other folder is begun; None for no limit.
        """
        waiting: dict[Future[FolderEntries], str] = {}
        folders = deque([folder.rstrip("/")])
        # each result is work for the next
        with thread_pool(THREADS) as pool:
            while (folders and not self._is_full(limit)) or waiting:
                while folders and len(waiting) < 4 * THREADS and not self._is_full(limit):
                    # upper folders first, so that many folders are left
                    one = folders.popleft() if limit is not None else folders.pop()
                    check_levels(folder, one)
                    waiting[pool.submit(io.entries, one)] = one
                for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                    one, found = waiting.pop(done), done.result()
                    self.take(one, found.files)
                    folders += self.enter(one, found.folders)
        return list(folders)

    def _is_full(self, limit: int | None) -> bool:
        return limit is not None and self.count >= limit

    def enter(self, folder: str, names: Iterable[str]) -> list[str]:
        """Return the folders in a folder that are to be listed, too."""
        for name in names:
            if name in _FORMATS:
                self.others[folder] = _FORMATS[name]
        inner = (f"{folder}/{name}" for name in names if name not in self.hidden)
        return [location for location in inner if self._has_name(location)]

    def take(self, folder: str, files: Iterable[FileStatus]) -> None:
        """Add the files in a folder."""
        for file in files:
            if not self._has_name(file.location):
                continue
            name = file.location.rpartition("/")[2]
            self._notice(folder, name, file.location, file.mtime_ms)
            # of hidden files only unfinished ones of killed icecomb writers
            if name not in self.hidden or is_draft(name):
                self._keep(file.location, file.mtime_ms)

    def _has_name(self, location: str) -> bool:
        """Return whether a location is a text: metadata cannot name any other."""
        try:
            location.encode()
        except UnicodeEncodeError:
            self._unnamed.append(location)
            return False
        return True

    def _notice(self, folder: str, name: str, location: str, mtime_ms: int) -> None:
        above, _, last = folder.rpartition("/")
        if name.endswith(METADATA_SUFFIXES):
            self.metadata_files[location] = mtime_ms
        elif last == "schema" and _PAIMON.fullmatch(name):
            self.others[above] = "a Paimon table"
        elif last in _FORMATS:
            self.others[above] = _FORMATS[last]

    def _keep(self, location: str, mtime_ms: int | None) -> None:
        self._locations.append(location)
        self._times.append(mtime_ms)
        self.count += 1
        if len(self._locations) >= _BATCH:
            self._seal()

    def _seal(self) -> None:
        if self._locations:
            self._chunks.append(file_batch(self._locations, self._times))
            self._locations, self._times = [], []


def file_batch(locations: Sequence[str], times: Sequence[int | None]) -> pa.RecordBatch:
    """Make a batch of files and their last changes, epoch milliseconds; null is unknown."""
    columns = [pa.array(locations, pa.string()), pa.array(times, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, ["location", "mtime_ms"])


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
    with tempfile.TemporaryDirectory(prefix="icecomb-listing-") as place:
        known = Path(place) / "known"
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
