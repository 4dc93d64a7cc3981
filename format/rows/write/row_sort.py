"""Rows sorted by partition and by a table's sort order, in bounded memory.

Rows are collected up to a number of bytes and sorted as a *run*. More rows than that are kept as
sorted runs in temporary files of this machine and merged at the end, so that the whole input comes
out in one order, however large it is. Nothing is done per row in Python.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icecomb.format.rows.write.partition_split import field_path
from icecomb.format.rows.write.rolling_writer import writing
from icecomb.format.spec.partition import PartitionSpec
from icecomb.format.spec.schema import Schema
from icecomb.format.spec.sort import NullOrder, SortDirection, SortOrder
from icecomb.format.spec.transform import Transform, UnknownTransform, VoidTransform

_RUN_BYTES = 128 << 20
"""Rows of a run; sorting it takes about three times as much memory."""
_BATCH_ROWS = 1 << 14
"""Rows of a batch: of each run, one is in memory while they are merged."""
_OUTPUT_ROWS = 1 << 16


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
        return _total_order(array, one_nan=self.groups) if _is_floating(array) else array


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
    keys = [
        SortKey(field_path(schema, f.source_id), f.transform, groups=True)
        for f in spec.fields
        if not isinstance(f.transform, VoidTransform)
    ]
    ordering = [
        SortKey(
            field_path(schema, f.source_id),
            f.transform,
            f.direction is SortDirection.DESC,
            f.null_order is NullOrder.NULLS_FIRST,
        )
        for f in order.fields
    ]
    return keys + ordering


class RowSorter:
    """Takes rows in any order and gives them back sorted; rows that are equal keep their order.

    Args:
        keys: What rows are compared by, the most important first.
    """

    def __init__(self, keys: Sequence[SortKey]) -> None:
        self._keys = keys
        self._waiting: list[pa.RecordBatch] = []
        self._bytes = 0
        self._runs: list[Path] = []
        self._folder: Path | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Take over rows; all batches have the same columns."""
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes >= _RUN_BYTES:
            self._spill()

    def drain(self) -> Iterator[pa.RecordBatch]:
        """All rows in order."""
        if not self._runs:
            if self._waiting:
                yield from _slices(self._sorted(), _OUTPUT_ROWS)
            self._waiting = []
            return
        if self._waiting:
            self._spill()
        try:
            yield from self._merged([self._run(path) for path in self._runs])
        finally:
            self.discard()

    def discard(self) -> None:
        """Drop all rows and temporary files."""
        self._waiting, self._bytes, self._runs = [], 0, []
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
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="icecomb-sort-"))
        path = self._folder / f"{len(self._runs)}.arrow"
        run = self._sorted()
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with (
            writing(str(path)),
            pa.OSFile(str(path), "wb") as file,
            pa.ipc.new_stream(file, run.schema, options=options) as stream,
        ):
            for batch in _slices(run, _BATCH_ROWS):
                stream.write_batch(batch)
        self._runs.append(path)
        self._waiting, self._bytes = [], 0

    @staticmethod
    def _run(path: Path) -> Iterator[pa.RecordBatch]:
        with pa.OSFile(str(path), "rb") as file, pa.ipc.open_stream(file) as stream:
            yield from stream

    def _merged(self, runs: list[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
        """The rows of sorted runs in one order.

        The batches at the head of all runs are sorted together. What comes before the end of each
        of them is final: nothing that follows in any run can come before it.
        """
        heads: dict[int, pa.RecordBatch] = dict(enumerate(map(next, runs)))
        while heads:
            together = pa.concat_batches(heads.values())
            order = np.asarray(self._indices(together))
            rank = np.empty(len(order), np.int64)
            rank[order] = np.arange(len(order))
            ends = np.cumsum([head.num_rows for head in heads.values()])
            final = order[: int(rank[ends - 1].min()) + 1]
            yield from _slices(together.take(pa.array(final)), _OUTPUT_ROWS)
            taken = np.bincount(np.searchsorted(ends, final, side="right"), minlength=len(heads))
            heads = dict(_following(heads, taken.tolist(), runs))


def _following(
    heads: dict[int, pa.RecordBatch], taken: list[int], runs: list[Iterator[pa.RecordBatch]]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """What is at the head of each run after rows were taken; a run that ended has nothing."""
    for (i, head), used in zip(heads.items(), taken, strict=True):
        if used < head.num_rows:
            yield i, head.slice(used)
        elif (batch := next(runs[i], None)) is not None:
            yield i, batch


def _slices(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, batch.num_rows, rows):
        yield batch.slice(start, rows)


def _is_floating(array: pa.Array) -> bool:
    return bool(pa.types.is_floating(array.type))


def _total_order(array: pa.Array, *, one_nan: bool) -> Any:
    """Floating numbers as whole ones in the order of the specification.

    -NaN < -infinity < -1 < -0 < 0 < 1 < infinity < NaN (spec: Sorting).
    """
    if one_nan:
        array = pc.if_else(pc.is_nan(array), pa.scalar(float("nan"), array.type), array)
    whole = pa.int32() if array.type == pa.float32() else pa.int64()
    bits = array.view(whole)
    low_bits = pa.scalar((1 << (whole.bit_width - 1)) - 1, whole)
    return pc.if_else(pc.less(bits, pa.scalar(0, whole)), pc.bit_wise_xor(bits, low_bits), bits)
