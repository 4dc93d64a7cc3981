"""Footers kept beside the table until it is migrated, so that none is read twice.

    <table location>/_icecomb_migration/footers/<identity>/<digest of the content>.parquet

They belong to no attempt: after a crash, a removed blocker or a change of the table, the next apply
reads only the footers of new files. A row counts only for the file it was made from: of the same
path, length, time of change and inode (files of one size and time may be exchanged, and copies are
given old times), in a partition that is read the same way, for the same schema, properties and
version of icecomb (the identity). The footer of a file changed shortly before it was read is not
kept: a writer may change the file again within the tick of the storage's clock. Files that differ
from what was written, by their digest, are skipped.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from icecomb.catalog.migrate.journal.journal import FOLDER
from icecomb.catalog.migrate.source.footer_row import KEPT, FooterRow
from icecomb.catalog.migrate.source.partition_folders import DIGEST
from icecomb.catalog.migrate.source.spool import ROWS, Spool, batch_of
from icecomb.catalog.report.progress import Progress
from icecomb.format.errors import FileAlreadyExistsError, IcecombError, NoSuchFileError
from icecomb.format.rows.parquet.own_table import OwnTable
from icecomb.format.storage.file_io import FileIO
from icecomb.format.storage.file_system import FileStatus

FEWEST: Final = 100
"""The least number of files whose footers are worth keeping."""
SETTLED_MS: Final = 60_000
"""Milliseconds that must pass between a file's last change and the reading of its footer."""
BYTES: Final = 32 << 20
_STATED: Final = 5
"""Number of columns that identify a row's file."""


class Asked(NamedTuple):
    """A file whose footer is looked up, and what it depends on of the partition's properties."""

    status: FileStatus
    partition: bytes


class FooterFolder:
    """The folders of kept footers of a Hive table.

    Args:
        locations: The folders beside which some may be kept: the table's, and that of one made
            from it.
        target: The one of these folders beside which new ones are kept; None for nowhere.
    """

    def __init__(
        self, io: FileIO, locations: Sequence[str], progress: Progress, target: str | None
    ) -> None:
        self._io = io
        self._roots = [_root(location) for location in locations]
        self._progress = progress
        self._target = None if target is None else _root(target)

    def opened(self, identity: str) -> KeptFooters:
        """Open the kept footers of one identity."""
        folders = [f"{root}/{identity}" for root in self._roots]
        target = None if self._target is None else f"{self._target}/{identity}"
        return KeptFooters(self._io, folders, self._progress, target)


class KeptFooters:
    """The kept footers of one identity; new ones are written by the ten thousand.

    Args:
        target: The folder for new ones; None for nowhere.
    """

    def __init__(
        self, io: FileIO, folders: Sequence[str], progress: Progress, target: str | None
    ) -> None:
        self._io = io
        self._folders = folders
        self._progress = progress
        self._target = target
        self._new: list[tuple[object, ...]] = []
        self._bytes = 0
        self._spool = Spool(KEPT)
        self._page: tuple[int, list[tuple[Any, ...]]] = (-1, [])
        digests = bytearray()
        starts = [0]
        for batch in self._read():
            self._spool.append(batch)
            columns = [batch.column(name).to_pylist() for name in KEPT.names[:_STATED]]
            for key in zip(*columns, strict=True):
                digests += _key(*key)
            starts.append(self._spool.rows)
        found = np.frombuffer(bytes(digests), f"S{DIGEST}")
        self._order = np.argsort(found, kind="stable")
        self._ordered = found[self._order]
        self._starts = np.array(starts)

    def find(self, files: Sequence[Asked]) -> list[FooterRow | None]:
        """Return the kept footers of files; None for each that is not kept."""
        out: list[FooterRow | None] = [None] * len(files)
        if not len(self._ordered) or not files:
            return out
        keys = [_stated(one) for one in files]
        asked = np.array([_key(*key) for key in keys], f"S{DIGEST}")
        at = np.minimum(np.searchsorted(self._ordered, asked), len(self._ordered) - 1)
        hits = np.flatnonzero(self._ordered[at] == asked)
        rows = self._order[at[hits]]
        pages = np.searchsorted(self._starts, rows, side="right") - 1
        starts = self._starts.tolist()
        for hit, row, page in zip(hits.tolist(), rows.tolist(), pages.tolist(), strict=True):
            kept = self._rows(page)[row - starts[page]]
            if kept[:_STATED] == keys[hit]:
                out[hit] = FooterRow(*kept[_STATED:])
        return out

    def keep(self, file: Asked, footer: FooterRow, read_ms: int) -> None:
        """Keep a footer, if it certainly is that of the listed file.

        Args:
            read_ms: Earliest time when its reading began, in milliseconds since the epoch.
        """
        status = file.status
        settled = 0 < status.mtime_ms <= read_ms - SETTLED_MS and status.file_id != 0
        if self._target is None or not settled or footer.record is None or footer.problems:
            return
        self._new.append((*_stated(file), *footer[:-1]))
        self._bytes += len(footer.record)
        if len(self._new) >= ROWS or self._bytes >= BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the footers that are not written yet."""
        if not self._new:
            return
        out = BytesIO()
        table = pa.Table.from_batches([batch_of(KEPT, self._new)])
        pq.write_table(table, out, compression="zstd")
        self._new, self._bytes = [], 0
        data = out.getvalue()
        try:
            with suppress(FileAlreadyExistsError):
                self._io.create(f"{self._target}/{_name(data)}", data)
        except IcecombError as error:
            self._target = None
            self._progress.say(f"footers are not kept for a later attempt: {error.message}")

    def _rows(self, page: int) -> list[tuple[Any, ...]]:
        if self._page[0] != page:
            columns = [column.to_pylist() for column in self._spool.batch(page).columns]
            self._page = (page, list(zip(*columns, strict=True)))
        return self._page[1]

    def _read(self) -> Iterator[pa.RecordBatch]:
        found = (one for folder in self._folders for one in _locations(self._io, folder))
        for location in found:
            yield from self._opened(location)

    def _opened(self, location: str) -> list[pa.RecordBatch]:
        """Return the rows of a file; none if it is not what was written: footers are read again."""
        with suppress(IcecombError, OSError, ValueError):
            data = self._io.read(location)
            if location.rpartition("/")[2] == _name(data):
                return list(OwnTable(data, KEPT).batches(ROWS))
        return []


def discard_footers(io: FileIO, table_location: str) -> None:
    """Remove the kept footers of a table that is migrated, or will not be."""
    root = _root(table_location)
    found = _locations(io, root)
    if found:
        io.delete(found)
        folders = sorted({location.rpartition("/")[0] for location in found})
        for folder in (*folders, root, root.rpartition("/")[0]):
            with suppress(NoSuchFileError):
                io.delete_folder(folder)


def now_ms() -> int:
    """Return the current time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def _locations(io: FileIO, folder: str) -> list[str]:
    listed = (status.location for status in io.list(folder))
    return [location for location in listed if location.endswith(".parquet")]


def _root(table_location: str) -> str:
    return f"{table_location.rstrip('/')}/{FOLDER}/footers"


def _stated(file: Asked) -> tuple[str, int, int, int, bytes]:
    found = file.status
    return found.location, found.size, found.mtime_ms, found.file_id, file.partition


def _key(path: str, size: int, mtime_ms: int, file_id: int, partition: bytes) -> bytes:
    numbers = f"{size}/{mtime_ms}/{file_id}/{len(partition)}/".encode()
    text = numbers + partition + path.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=DIGEST).digest()


def _name(data: bytes) -> str:
    return f"{hashlib.blake2b(data, digest_size=DIGEST).hexdigest()}.parquet"
