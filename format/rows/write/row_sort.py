"""Rows sorted by partition and by a table's sort order, in bounded memory.

Rows are collected up to a number of bytes and sorted as a *run*. More rows than that are kept as
sorted runs in temporary files of this machine and merged, a few at a time, so that the whole input
comes out in one order, however large it is. Nothing is done per row in Python.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.rows.write.partition_split import field_path
from icecomb.format.rows.write.rolling_writer import writing
from icecomb.format.rows.write.spill_folder import new_spill_folder
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import NullOrder, SortDirection, SortOrder
from icecomb.format.spec.transform import Transform, UnknownTransform, VoidTransform

_RUN_BYTES = 128 << 20
"""Rows of a run; sorting it takes about three times as much memory."""
_MERGED_RUNS = 16
"""So many runs at most are merged at once: of each, two batches are in memory."""
_BATCH_ROWS = 1 << 15
"""The most rows of a run's batch."""
_BATCH_BYTES = 4 << 20
"""The most bytes of one, about."""
_OUTPUT_ROWS = 1 << 16


class RowKey(Protocol):
    """What rows are compared by."""

    @property
    def descending(self) -> bool:
        """Whether the greatest comes first."""

    @property
    def nulls_first(self) -> bool:
        """Whether nulls come before all values."""

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """The values to compare, in a type whose order in Arrow is that of the rows."""


@dataclass(frozen=True, slots=True)
class SortKey:
    """What rows are compared by.

    Args:
        path: The indices that lead to the column through structs.
        transform: What is done to its values.
        descending: Whether the greatest comes first.
        nulls_first: Whether nulls come before all values.
        groups: Whether values that are one partition must be equal, as all NaN are.
    """

    path: tuple[int, ...]
    transform: Transform
    descending: bool = False
    nulls_first: bool = True
    groups: bool = False

    def values(self, batch: pa.RecordBatch) -> pa.Array:
        """The values to compare, in a type whose order in Arrow is the specification's."""
        array = batch.column(self.path[0])
        if len(self.path) > 1:
            array = pc.struct_field(array, list(self.path[1:]))
        array = self.transform.apply_array(array)
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        return total_order(array, one_nan=self.groups) if _is_floating(array) else array


def sort_keys(schema: Schema, spec: PartitionSpec, order: SortOrder) -> list[SortKey] | None:
    """The keys by which rows are clustered by partition, and sorted within each.

    Args:
        schema: The table's schema; batches have its columns.
        spec: The partition spec.
        order: The sort order.

    Returns:
        The keys; None if the order has none, or one that this version cannot follow.
    """
    unknown = any(
        isinstance(f.transform, UnknownTransform) or not schema.contains(f.source_id)
        for f in order.fields
    )
    if order.is_unsorted or unknown:
        return None
    ordering = [
        SortKey(
            field_path(schema, f.source_id),
            f.transform,
            f.direction is SortDirection.DESC,
            f.null_order is NullOrder.NULLS_FIRST,
        )
        for f in order.fields
    ]
    return partition_sort_keys(schema, spec) + ordering


def partition_sort_keys(schema: Schema, spec: PartitionSpec) -> list[SortKey]:
    """The keys by which rows are clustered by partition."""
    return [
        SortKey(field_path(schema, f.source_id), f.transform, groups=True)
        for f in spec.fields
        if not isinstance(f.transform, VoidTransform)
    ]


class RowSorter:
    """Takes rows in any order and gives them back sorted; rows that are equal keep their order.

    Args:
        keys: What rows are compared by, the most important first.
    """

    def __init__(self, keys: Sequence[RowKey]) -> None:
        self._keys = keys
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        # a merged run goes to the next level, so that runs of one level are of about one length
        self._levels: list[list[Path]] = []
        self._folder: Path | None = None
        self._files = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take over rows; all batches have the same columns."""
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= _RUN_BYTES:
            self._spill()

    def drain(self) -> Iterator[pa.RecordBatch]:
        """All rows in order."""
        if not self._levels:
            if self._waiting:
                yield from _slices(self._sorted(), _OUTPUT_ROWS)
            self._waiting = []
            return
        if self._waiting:
            self._spill()
        try:
            # rows of higher levels came first
            runs = [path for level in reversed(self._levels) for path in level]
            while (more := len(runs) - _MERGED_RUNS) > 0:
                # the shortest ones, and no more of them than have to be
                count = min(more + 1, _MERGED_RUNS)
                runs[-count:] = [self._merge(runs[-count:])]
            yield from self._merged(runs)
        finally:
            self.discard()

    def discard(self) -> None:
        """Drop all rows and temporary files."""
        self._waiting, self._bytes, self._levels = [], 0, []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _sorted(self) -> pa.RecordBatch:
        whole = pa.concat_batches(self._waiting)
        return whole.take(self._indices(whole))

    def _indices(self, batch: pa.RecordBatch) -> pa.Array:
        names = [str(i) for i in range(len(self._keys))]
        columns = pa.record_batch([key.values(batch) for key in self._keys], names)
        how = [
            (
                name,
                "descending" if key.descending else "ascending",
                "at_start" if key.nulls_first else "at_end",
            )
            for name, key in zip(names, self._keys, strict=True)
        ]
        return pc.sort_indices(columns, sort_keys=how)

    def _spill(self) -> None:
        run = self._sorted()
        self._waiting, self._bytes = [], 0
        path = self._written(iter([run]))
        for level in self._levels:
            level.append(path)
            if len(level) < _MERGED_RUNS:
                return
            path = self._merge(level)
            level.clear()
        self._levels.append([path])

    def _merge(self, runs: list[Path]) -> Path:
        """One run of several, which are deleted."""
        path = self._written(self._merged(runs))
        for run in runs:
            run.unlink()
        return path

    def _written(self, batches: Iterator[pa.RecordBatch]) -> Path:
        if self._folder is None:
            self._folder = new_spill_folder()
        path = self._folder / f"{self._files}.arrow"
        self._files += 1
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        first = next(batches)
        rows = min(_BATCH_ROWS, max(_BATCH_BYTES * first.num_rows // max(first.nbytes, 1), 1))
        with (
            writing(str(path)),
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_stream(file, first.schema, options=options) as stream,
        ):
            for batch in chain([first], batches):
                for piece in _slices(batch, rows):
                    stream.write_batch(piece)
        return path

    def _merged(self, paths: Sequence[Path]) -> Iterator[pa.RecordBatch]:
        """The rows of sorted runs in one order.

        The heads of all runs are sorted together. What comes before the end of each head that is
        not its run's last is final: nothing that follows in any run can come before it.
        """
        runs = [_Run(path) for path in paths]
        while runs:
            heads = [run.head() for run in runs]
            together = pa.concat_batches(heads)
            order = np.asarray(self._indices(together))
            ends = np.cumsum([head.num_rows for head in heads])
            final = order
            bounds = [end for run, end in zip(runs, ends, strict=True) if not run.ended]
            if bounds:
                rank = np.empty(len(order), np.int64)
                rank[order] = np.arange(len(order))
                final = order[: int(rank[np.array(bounds) - 1].min()) + 1]
            yield from _slices(together.take(pa.array(final)), _OUTPUT_ROWS)
            taken = np.bincount(np.searchsorted(ends, final, side="right"), minlength=len(runs))
            runs = [run for run, used in zip(runs, taken.tolist(), strict=True) if run.take(used)]


class _Run:
    """A sorted run that is read; at its head is about a batch, or all that is left.

    Were the head only refilled when it is empty, those of other runs would be a few rows long by
    then, and be sorted again and again.
    """

    def __init__(self, path: Path) -> None:
        self._batches = _batches(path)
        self._head: list[pa.RecordBatch] = []
        self._rows = 0
        self.ended = False

    def head(self) -> pa.RecordBatch:
        """The next rows."""
        while not self.ended and self._rows < _BATCH_ROWS:
            batch = next(self._batches, None)
            if batch is None:
                self.ended = True
            else:
                self._head.append(batch)
                self._rows += batch.num_rows
                if self._rows >= batch.num_rows * 2:
                    break
        self._head = [pa.concat_batches(self._head)]
        return self._head[0]

    def take(self, rows: int) -> bool:
        """Drop rows of the head; whether there are more."""
        self._rows -= rows
        self._head = [self._head[0].slice(rows)]
        return self._rows > 0 or not self.ended


def _batches(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
        yield from stream


def _slices(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _is_floating(array: pa.Array) -> bool:
    return bool(pa.types.is_floating(array.type))


def total_order(array: pa.Array, *, one_nan: bool = False) -> Any:
    """Floating numbers as whole ones in the order of the specification.

    -NaN < -infinity < -1 < -0 < 0 < 1 < infinity < NaN (spec: Sorting).
    """
    if one_nan:
        array = pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), array.type), array)
    whole = pa.int32() if array.type == pa.float32() else pa.int64()
    bits = array.view(whole)
    low_bits = pa.scalar((1 << (whole.bit_width - 1)) - 1, whole)
    return pc.if_else(pc.less(bits, pa.scalar(0, whole)), pc.bit_wise_xor(bits, low_bits), bits)
