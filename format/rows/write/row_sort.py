"""Sorting of rows in bounded memory.

Rows are collected up to a number of bytes and sorted as a *run*. If there are more rows, sorted
runs are kept in temporary files on this machine and merged, a few at a time, so that the whole
input comes out in one order, however large it is. No Python code runs per row.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from icecomb.format.arrow.batch_stream import stream
from icecomb.format.cancellation import check_wanted
from icecomb.format.rows.write.row_key import Comparison, RowKey
from icecomb.format.rows.write.sorted_run import SortedRun, merged, slices, write_run
from icecomb.format.rows.write.spill_folder import new_spill_folder
from icecomb.format.storage.temporary_file import cannot_keep

_RUN_BYTES = 128 << 20
"""The size of a run in bytes; sorting it takes about twice as much memory."""
_MERGED_RUNS = 16
"""The maximum number of runs merged at once."""


class RowSorter:
    """A stable sorter of rows by keys, most significant first."""

    def __init__(self, keys: Sequence[RowKey]) -> None:
        self._comparison = Comparison(keys)
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._runs: list[SortedRun] = []
        self._folder: Path | None = None
        self._files = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows; all batches must have the same columns."""
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= _RUN_BYTES:
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
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _drained(self) -> Iterator[pa.RecordBatch]:
        if self._waiting:
            self._spill()
        while len(self._runs) > _MERGED_RUNS:
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
        while (more := len(left) + len(found) - _MERGED_RUNS) > 0 and len(left) > 1:
            count = min(more + 1, _MERGED_RUNS)
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
