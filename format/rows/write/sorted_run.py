"""Sorted runs of rows in temporary files, and several of them as one."""

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
"""So many batches, about, are in memory of all runs that are merged."""
_BATCH_ROWS = 1 << 15
"""The most rows of a run's batch."""
_BATCH_BYTES = 4 << 20
"""The most bytes of one, about."""
_BLOCK_ROWS = 1 << 10
"""Of so many rows one is looked at to find how many of a run may be merged."""
_OUTPUT_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Rows in their order in a file.

    Attributes:
        path: The file.
        batches: How many batches it has, all of about one size.
    """

    path: Path
    batches: int


def write_run(path: Path, batches: Iterator[pa.RecordBatch]) -> SortedRun:
    """Write a run.

    Args:
        path: The file; there is none yet.
        batches: At least one, of any size.

    Raises:
        FileIOError: It cannot be written.
    """
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
    """The rows of runs in one order; of equal ones those of the first run come first.

    The next rows of all runs, their *heads*, are sorted together, again and again. What comes
    before the end of each head that is not its run's last is final: nothing that follows in any run
    can come before it. Only what may be final is sorted: blocks that begin after that end wait.
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
    """A batch in pieces of so many rows at most."""
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


@dataclass(frozen=True, slots=True)
class _Batch:
    """A batch of a run, what its rows are compared by, and that of the first row of each block."""

    rows: pa.RecordBatch
    values: pa.RecordBatch
    blocks: pa.RecordBatch


class _Head:
    """The next rows of a run.

    Args:
        run: The run.
        comparison: How rows are compared.
        batches: How many batches it is long, about: as many of all as the run has of all, so that
            runs of any lengths are through at one time.

    Attributes:
        rows: How many rows there are.
        ended: Whether these are the last ones.
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
        """Read on, if it is shorter than it should be."""
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
        """So many of its rows."""
        yield from self._cut((batch.rows for batch in self._held), rows)

    def values(self, rows: int) -> Iterator[pa.RecordBatch]:
        """What so many of its rows are compared by."""
        yield from self._cut((batch.values for batch in self._held), rows)

    def last(self) -> pa.RecordBatch:
        """What its last row is compared by."""
        values = self._held[-1].values
        return values.slice(values.num_rows - 1)

    def blocks(self) -> list[pa.RecordBatch]:
        """What the first row of each block is compared by; the first blocks may be used up."""
        return [batch.blocks for batch in self._held]

    def places(self) -> Any:
        """Where each of these rows is in it; less than 0 where it is used up."""
        starts = np.cumsum([-self._used, *(batch.rows.num_rows for batch in self._held)])
        held = zip(starts.tolist(), self._held, strict=False)
        return np.concatenate(
            [np.arange(start, start + b.rows.num_rows, _BLOCK_ROWS) for start, b in held]
        )

    def drop(self, rows: int) -> None:
        """Go on behind so many rows."""
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
    """The head whose last row comes first; None if all of them are the last of their runs."""
    going = [head for head in heads if not head.ended]
    if not going:
        return None
    order = comparison.order(pa.concat_batches([head.last() for head in going]))
    return going[int(order[0])]


def _may_be_final(heads: Sequence[_Head], end: _Head, comparison: Comparison) -> list[int]:
    """How many rows of each head may come before the last one of a head, that one among them."""
    parts: list[pa.RecordBatch] = []
    for head in heads:
        parts += head.blocks()
        if head is end:
            # of equal rows those of later runs come after it
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
    """The batches of a run.

    Raises:
        CorruptFileError: There are fewer, which the end of a stream does not tell.
    """
    count = 0
    with pa.OSFile(str(run.path), "rb") as file, pa.ipc.open_stream(file) as stream:
        for batch in stream:
            count += 1
            yield batch
    if count != run.batches:
        raise CorruptFileError(
            f"Temporary file {run.path} has {count} batches of rows, {run.batches} were written",
            hint="see that nobody else writes below TMPDIR, and that its disk is sound",
            path=str(run.path),
        )
