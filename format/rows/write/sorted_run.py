"""Sorted runs of rows in temporary files, and their merging."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from icecomb.format.cancellation import check_wanted
from icecomb.format.errors import CorruptFileError
from icecomb.format.rows.write.rolling_writer import writing
from icecomb.format.rows.write.row_key import Comparison

_HELD_BATCHES = 16
"""The approximate number of batches in memory, of all runs being merged together."""
_BATCH_ROWS = 1 << 15
"""The maximum number of rows in a run's batch."""
_BATCH_BYTES = 4 << 20
"""The approximate maximum size of a run's batch, in bytes."""
_BLOCK_ROWS = 1 << 10
"""One row of each block of this many is compared to find how many of a run may be merged."""
_OUTPUT_ROWS = 1 << 16


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
            rows = max(_BATCH_BYTES * batch.num_rows // max(batch.nbytes, 1), 1)
            for piece in slices(batch, min(_BATCH_ROWS, rows)):
                stream.write_batch(piece)
                count += 1
    return SortedRun(path, count)


def merged(runs: Sequence[SortedRun], comparison: Comparison) -> Iterator[pa.RecordBatch]:
    """Merge runs; of equal rows those of earlier runs come first.

    The next rows of all runs, their *heads*, are repeatedly sorted together. Rows that sort before
    the end of each head that is not its run's last are final: nothing that follows in any run can
    come before them. Only rows that may be final are sorted: blocks that begin after that end wait.
    """
    total = sum(run.batches for run in runs)
    heads = [_Head(run, comparison, _HELD_BATCHES * run.batches / total) for run in runs]
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


def slices(batch: pa.RecordBatch, rows: int = _OUTPUT_ROWS) -> Iterator[pa.RecordBatch]:
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

    def __init__(self, run: SortedRun, comparison: Comparison, batches: float) -> None:
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
            blocks = values.take(pa.array(np.arange(0, rows.num_rows, _BLOCK_ROWS)))
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
            [np.arange(start, start + b.rows.num_rows, _BLOCK_ROWS) for start, b in held]
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


def _first_end(heads: Sequence[_Head], comparison: Comparison) -> _Head | None:
    """Return the head whose last row comes first; None if all heads end their runs."""
    going = [head for head in heads if not head.ended]
    if not going:
        return None
    order = comparison.order(pa.concat_batches([head.last() for head in going]))
    return going[int(order[0])]


def _may_be_final(heads: Sequence[_Head], end: _Head, comparison: Comparison) -> list[int]:
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
