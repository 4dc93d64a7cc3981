"""All files below a folder, listed many folders at a time, and whose folders lie among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from icecomb.catalog.progress import THREADS
from icecomb.catalog.version_name import METADATA_SUFFIXES
from icecomb.format.storage.file_system import is_draft

if TYPE_CHECKING:
    from icecomb.format.spec.partition import PartitionSpec
    from icecomb.format.storage.file_io import FileIO
    from icecomb.format.storage.file_system import FileStatus, FolderEntries

_BATCH: Final = 50_000
_FORMATS: Final = {"_delta_log": "a Delta table", ".hoodie": "a Hudi table"}
_PAIMON: Final = re.compile(r"schema-\d+")


def is_hidden(specs: Iterable[PartitionSpec]) -> Callable[[str], bool]:
    """Whether files and folders of a name are passed over, as Iceberg does.

    Those are names that begin with `_` or `.`, but folders of partition fields named so.
    """
    fields = tuple(
        f"{field.name}=" for spec in specs for field in spec.fields if field.name[:1] in {"_", "."}
    )
    return lambda name: name.startswith(("_", ".")) and not name.startswith(fields)


class FolderListing:
    """Files, and whose folders lie among them.

    Args:
        hidden: Which names are passed over.

    Attributes:
        metadata_files: Those that are named like metadata files of tables, and their times.
        others: Folders of tables of other formats, and what they are.
    """

    def __init__(self, hidden: Callable[[str], bool]) -> None:
        self._hidden = hidden
        self._locations: list[str] = []
        self._times: list[int | None] = []
        self._chunks: list[pa.RecordBatch] = []
        self.metadata_files: dict[str, int] = {}
        self.others: dict[str, str] = {}

    def batches(self) -> list[pa.RecordBatch]:
        """All files: `location`, and `mtime_ms`, milliseconds since the epoch, null if unknown."""
        self._seal()
        return self._chunks

    def name(self, files: Iterable[tuple[str, int | None]]) -> FolderListing:
        """Take files that somebody else listed, those that are passed over, too."""
        for location, mtime_ms in files:
            above, _, name = location.rpartition("/")
            self._notice(above, name, location, mtime_ms or 0)
            self._keep(location, mtime_ms)
        return self

    def walk(self, io: FileIO, folder: str) -> FolderListing:
        """Take all files below a folder.

        Raises:
            FileIOError: A folder cannot be listed.
        """
        with ThreadPoolExecutor(THREADS, "icecomb-listing") as pool:
            waiting: dict[Future[FolderEntries], str] = {}
            folders = [folder.rstrip("/")]
            try:
                while folders or waiting:
                    while folders and len(waiting) < 4 * THREADS:
                        one = folders.pop()
                        waiting[pool.submit(io.entries, one)] = one
                    for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                        one, found = waiting.pop(done), done.result()
                        self._take(one, found.files)
                        folders += self._below(one, found.folders)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
        return self

    def _below(self, folder: str, names: Iterable[str]) -> list[str]:
        for name in names:
            if name in _FORMATS:
                self.others[folder] = _FORMATS[name]
        return [f"{folder}/{name}" for name in names if not self._hidden(name)]

    def _take(self, folder: str, files: Iterable[FileStatus]) -> None:
        for file in files:
            name = file.location.rpartition("/")[2]
            self._notice(folder, name, file.location, file.mtime_ms)
            # of what is hidden only what a killed writer of ours did not finish
            if not self._hidden(name) or is_draft(name):
                self._keep(file.location, file.mtime_ms)

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
        if len(self._locations) >= _BATCH:
            self._seal()

    def _seal(self) -> None:
        if self._locations:
            self._chunks.append(file_batch(self._locations, self._times))
            self._locations, self._times = [], []


def file_batch(locations: Sequence[str], times: Sequence[int | None]) -> pa.RecordBatch:
    """Files and when they were changed last, milliseconds since the epoch; null is unknown."""
    columns = [pa.array(locations, pa.string()), pa.array(times, pa.int64())]
    return pa.RecordBatch.from_arrays(columns, ["location", "mtime_ms"])
