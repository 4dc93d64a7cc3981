"""Sorting of rows in bounded memory.

Rows are collected up to a number of bytes and sorted as a *run*. If there are more rows, sorted
runs are kept in temporary files on this machine and merged, a few at a time, so that the whole
input comes out in one order, however large it is. No Python code runs per row.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from icecomb.format.arrow.batch_stream import stream
from icecomb.format.cancellation import check_wanted
from icecomb.format.errors import CorruptFileError
from icecomb.format.process import has_ended, machine
from icecomb.format.rows.write.partition_writer import writing
from icecomb.format.rows.write.row_key import KeyComparison, RowKey
from icecomb.format.storage.temporary_file import cannot_keep

RUN_BYTES = 128 << 20
"""The size of a run in bytes; sorting it takes about twice as much memory."""
MERGED_RUNS = 16
"""The maximum number of runs merged at once."""


class RowSorter:
    """A stable sorter of rows by keys, most significant first."""

    def __init__(self, keys: Sequence[RowKey]) -> None:
        self._comparison = KeyComparison(keys)
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._runs: list[SortedRun] = []
        self._folder: Path | None = None
        self._files = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows; all batches must have the same columns."""
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= RUN_BYTES:
            self._spill()

    def drain(self) -> Generator[pa.RecordBatch, None, None]:
        """Yield all rows in order; close the generator if they are not all consumed."""
        if not self._runs:
            if self._waiting:
                yield from slices(self._sorted())
            return
        try:
            # one thread merges while the caller's thread writes
            yield from stream([self._drained], workers=2)
        finally:
            self.discard()

    def discard(self) -> None:
        """Discard all rows and temporary files."""
        self._waiting, self._bytes, self._runs = [], 0, []
        if self._folder is not None:
            with suppress(OSError):
                _remove(self._folder)
            self._folder = None

    def _drained(self) -> Iterator[pa.RecordBatch]:
        if self._waiting:
            self._spill()
        while len(self._runs) > MERGED_RUNS:
            self._runs = self._fewer(self._runs)
        yield from merged(self._runs, self._comparison)

    def _sorted(self) -> pa.RecordBatch:
        whole = pa.concat_batches(self._waiting)
        self._waiting, self._bytes = [], 0
        return whole.take(pa.array(self._comparison.order(self._comparison.values(whole))))

    def _spill(self) -> None:
        self._runs.append(self._written(iter([self._sorted()])))

    def _fewer(self, runs: list[SortedRun]) -> list[SortedRun]:
        """Merge adjacent runs, only as many as needed, and return the resulting runs."""
        found: list[SortedRun] = []
        left = list(runs)
        while (more := len(left) + len(found) - MERGED_RUNS) > 0 and len(left) > 1:
            count = min(more + 1, MERGED_RUNS)
            some, left = left[-count:], left[:-count]
            found.insert(0, self._written(merged(some, self._comparison)))
            for run in some:
                run.path.unlink()
        return left + found

    def _written(self, batches: Iterator[pa.RecordBatch]) -> SortedRun:
        check_wanted()  # else a folder that was removed would be re-created
        if self._folder is None:
            try:
                self._folder = new_spill_folder()
            except OSError as error:
                raise cannot_keep("sorted rows", error) from error
        self._files += 1
        return write_run(self._folder / f"{self._files}.arrow", batches)


_NAME: Final = "icecomb-sort-{host}-{pid}-"
_RUN: Final = re.compile(r"[0-9]+\.arrow")
_OURS: Final = re.compile(r"icecomb-sort-(?P<host>[0-9a-f]{8})-(?P<pid>[0-9]+)-[^/]+")


def new_spill_folder() -> Path:
    """Create a folder below `TMPDIR`, named after this process.

    Folders that dead processes of this machine left there are removed first.
    """
    place, host = Path(tempfile.gettempdir()), machine()
    for found in place.glob("icecomb-sort-*"):
        named = _OURS.fullmatch(found.name)
        if named is not None and named["host"] == host and has_ended(int(named["pid"])):
            with suppress(OSError):
                _remove(found)
    return Path(tempfile.mkdtemp(prefix=_NAME.format(host=host, pid=os.getpid())))


def _remove(folder: Path) -> None:
    """Remove a folder if it is this user's alone and has nothing but sorted runs.

    Another user may have given its name to something else in the meantime.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status, names = os.fstat(opened), os.listdir(opened)  # noqa: PTH208 - of a descriptor
        is_own = status.st_uid == os.geteuid() and stat.S_IMODE(status.st_mode) == stat.S_IRWXU
        if not is_own or not all(map(_RUN.fullmatch, names)):
            return
        for name in names:
            os.unlink(name, dir_fd=opened)
    finally:
        os.close(opened)
    folder.rmdir()


HELD_BATCHES = 16
"""The approximate number of batches in memory, of all runs being merged together."""
BATCH_ROWS = 1 << 15
"""The maximum number of rows in a run's batch."""
BATCH_BYTES = 4 << 20
"""The approximate maximum size of a run's batch, in bytes."""
BLOCK_ROWS = 1 << 10
"""One row of each block of this many is compared to find how many of a run may be merged."""
OUTPUT_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Sorted rows in a file, in `batches` batches of similar size."""

    path: Path
    batches: int


def write_run(path: Path, batches: Iterator[pa.RecordBatch]) -> SortedRun:
    """Write a run of at least one batch to a path that must not exist yet."""
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    first = next(batches)
    count = 0
    with (
        writing(str(path)),
        pa.OSFile(str(path), "wb") as file,
        pa.ipc.new_stream(file, first.schema, options=options) as stream,
    ):
        for batch in chain([first], batches):
            rows = max(BATCH_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)
            for piece in slices(batch, min(BATCH_ROWS, rows)):
                stream.write_batch(piece)
                count += 1
    return SortedRun(path, count)


def merged(runs: Sequence[SortedRun], comparison: KeyComparison) -> Iterator[pa.RecordBatch]:
    """Merge runs; of equal rows those of earlier runs come first.

    The next rows of all runs, their *heads*, are repeatedly sorted together. Rows that sort before
    the end of each head that is not its run's last are final: nothing that follows in any run can
    come before them. Only rows that may be final are sorted: blocks that begin after that end wait.
    """
    total = sum(run.batches for run in runs)
    heads = [_Head(run, comparison, HELD_BATCHES * run.batches / total) for run in runs]
    while True:
        check_wanted()
        for head in heads:
            head.fill()
        heads = [head for head in heads if head.rows]
        if not heads:
            return
        end = _first_end(heads, comparison)
        if end is None:
            counts = [head.rows for head in heads]
        else:
            counts = _may_be_final(heads, end, comparison)
        some = [(head, count) for head, count in zip(heads, counts, strict=True) if count]
        if len(some) == 1:
            [(head, count)] = some
            yield from head.first(count)
            head.drop(count)
            continue
        final = comparison.order(
            pa.concat_batches([part for head, count in some for part in head.values(count)])
        )
        ends = np.cumsum([count for _, count in some])
        if end is not None:
            last = next(at for (head, _), at in zip(some, ends, strict=True) if head is end) - 1
            final = final[: int(np.flatnonzero(final == last)[0]) + 1]
        rows = pa.concat_batches([part for head, count in some for part in head.first(count)])
        yield from slices(rows.take(pa.array(final)))
        is_final = np.zeros(len(rows), np.int64)
        is_final[final] = 1
        used = np.add.reduceat(is_final, ends - [count for _, count in some])
        for (head, _), number in zip(some, used.tolist(), strict=True):
            head.drop(number)


def slices(batch: pa.RecordBatch, rows: int = OUTPUT_ROWS) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of at most `rows` rows."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch of a run, the compared values of its rows, and those of each block's first row."""

    rows: pa.RecordBatch
    values: pa.RecordBatch
    blocks: pa.RecordBatch


class _Head:
    """The next rows of a run; `ended` if they are its last.

    Args:
        batches: The approximate number of batches to hold, in proportion to the run's length, so
            that runs of different lengths end at the same time.
    """

    def __init__(self, run: SortedRun, comparison: KeyComparison, batches: float) -> None:
        self._source = _batches(run)
        self._comparison = comparison
        self._batches = max(batches, 1)
        self._held: deque[_Batch] = deque()
        self._used = 0  # rows of the first batch
        self.rows = 0
        self.ended = False

    def fill(self) -> None:
        """Read more batches, if fewer are held than wanted."""
        while not self.ended and self._length() < self._batches:
            rows = next(self._source, None)
            if rows is None:
                self.ended = True
                return
            values = self._comparison.values(rows)
            blocks = values.take(pa.array(np.arange(0, rows.num_rows, BLOCK_ROWS)))
            self._held.append(_Batch(rows, values, blocks))
            self.rows += rows.num_rows

    def _length(self) -> float:
        if not self._held:
            return 0
        rows: int = self._held[0].rows.num_rows
        return len(self._held) - self._used / rows

    def first(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the first `rows` rows."""
        yield from self._cut((batch.rows for batch in self._held), rows)

    def values(self, rows: int) -> Iterator[pa.RecordBatch]:
        """Yield the compared values of the first `rows` rows."""
        yield from self._cut((batch.values for batch in self._held), rows)

    def last(self) -> pa.RecordBatch:
        """Return the compared values of the last row."""
        values = self._held[-1].values
        return values.slice(values.num_rows - 1)

    def blocks(self) -> list[pa.RecordBatch]:
        """Return the compared values of each block's first row, including consumed blocks."""
        return [batch.blocks for batch in self._held]

    def places(self) -> Any:
        """Return the position of each block's first row; negative if it was consumed."""
        starts = np.cumsum([-self._used, *(batch.rows.num_rows for batch in self._held)])
        held = zip(starts.tolist(), self._held, strict=False)
        return np.concatenate(
            [np.arange(start, start + b.rows.num_rows, BLOCK_ROWS) for start, b in held]
        )

    def drop(self, rows: int) -> None:
        """Discard the first `rows` rows."""
        self.rows -= rows
        self._used += rows
        while self._held and self._used >= self._held[0].rows.num_rows:
            self._used -= self._held.popleft().rows.num_rows

    def _cut(self, batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
        start = self._used
        for batch in batches:
            part = batch.slice(start, rows)
            start = 0
            rows -= part.num_rows
            yield part
            if not rows:
                return


def _first_end(heads: Sequence[_Head], comparison: KeyComparison) -> _Head | None:
    """Return the head whose last row comes first; None if all heads end their runs."""
    going = [head for head in heads if not head.ended]
    if not going:
        return None
    order = comparison.order(pa.concat_batches([head.last() for head in going]))
    return going[int(order[0])]


def _may_be_final(heads: Sequence[_Head], end: _Head, comparison: KeyComparison) -> list[int]:
    """Count the rows of each head that may come up to, and including, the last row of `end`."""
    parts: list[pa.RecordBatch] = []
    for head in heads:
        parts += head.blocks()
        if head is end:
            # among equal rows, those of later runs come after it
            last = sum(part.num_rows for part in parts)
            parts.append(head.last())
    order = comparison.order(pa.concat_batches(parts))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    is_before = iter((rank < rank[last]).tolist())
    counts = []
    for head in heads:
        places = head.places()
        before = sum(islice(is_before, len(places)))
        if head is end:
            next(is_before)
        counts.append(max(int(places[before]), 0) if before < len(places) else head.rows)
    return counts


def _batches(run: SortedRun) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a run; fewer than written raise CorruptFileError.

    The end of a stream does not show that batches are missing.
    """
    count = 0
    with pa.OSFile(str(run.path), "rb") as file, pa.ipc.open_stream(file) as stream:
        for batch in stream:
            count += 1
            yield batch
    if count != run.batches:
        raise CorruptFileError(
            f"Temporary file {run.path} has {count} batches of rows, {run.batches} were written",
            hint="Check that nothing else writes below TMPDIR, and that its disk is sound.",
            path=str(run.path),
        )
